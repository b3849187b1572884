"""Tickets: what a commit says of itself, and finding it in the log again.

Every commit of a table carries the same transaction id with a larger number than the one before, so
Delta refuses or ignores a writer whose lock was taken over; and every commit is looked up in the
log afterwards, since Delta ignores such a writer without an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.warehouse.delta_log import STEPS_PER_TOKEN, logged_commits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameWriter

SESSION_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
SESSION_APP = "spark.databricks.delta.write.txnAppId"
SESSION_TOKEN = "spark.databricks.delta.write.txnVersion"  # noqa: S105 - no password
FENCED = '{"@":"Fenced"}'
RESTORED = '{"@":"Restored","to":'
EVOLVED = '{"@":"Evolved","added":'
_STEPS = (FENCED, RESTORED, EVOLVED)
"""What the holder of one token may do before its batch, in this order."""


class CommitLostError(BackfillAssetsError):
    """Delta did not take a commit, and said nothing."""

    def __init__(self, *, path: str, token: int, head_before: int) -> None:
        self.path, self.token = path, token
        super().__init__(
            f"the commit to {path} with token {token} is not in its log after delta_version "
            f"{head_before}: another writer has taken the table over with a larger token. Nothing "
            "was written; run again"
        )


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a commit says of itself.

    Attributes:
        path: of the table.
        app_id: the table's name for Delta's transaction ids: one per table.
        token: the fencing token of the table's commit lock.
        metadata: the text that the commit carries; names the batch.
    """

    path: str
    app_id: str
    token: int
    metadata: str

    @property
    def text(self) -> str:
        """The metadata as it stands in the log: Spark's settings would expand a `${...}`."""
        return self.metadata.replace("$", "\\u0024")

    @property
    def transaction(self) -> str:
        """Delta's transaction version: the steps of one token's holder come in this order."""
        steps = (number for number, mark in enumerate(_STEPS) if self.metadata.startswith(mark))
        return str(self.token * STEPS_PER_TOKEN + next(steps, len(_STEPS)))


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was found in the log.

    Attributes:
        delta_version: Delta's number of it.
        bytes: size of the files that it added.
    """

    delta_version: int
    bytes: int


def writer(rows: DataFrame, ticket: Ticket) -> DataFrameWriter:
    """Write rows under a ticket."""
    return (
        rows.write.format("delta")
        .option("userMetadata", ticket.text)
        .option("txnAppId", ticket.app_id)
        .option("txnVersion", ticket.transaction)
    )


def commit_nothing(rows: DataFrame, ticket: Ticket) -> None:
    """Commit a ticket alone; rows are only the schema's sake."""
    writer(rows.limit(0), ticket).mode("append").save(ticket.path)


def found(ticket: Ticket, head_before: int) -> Committed:
    """Find a ticket's commit in the log.

    Raises:
        CommitLostError: it is not there.
    """
    for commit in logged_commits(ticket.path, head_before):
        if commit.metadata == ticket.text:
            return Committed(commit.delta_version, commit.bytes_added)
    raise CommitLostError(path=ticket.path, token=ticket.token, head_before=head_before)
