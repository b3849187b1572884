"""Tickets: the metadata of a commit, which identifies it in the log.

Every commit of a table carries the same transaction id with a larger number than the one before, so
a writer whose lock was taken over is refused; and every commit is looked up in the log afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.warehouse.log.delta_log import ABSENT, STEPS_PER_TOKEN, logged_commits

if TYPE_CHECKING:
    from deltalake import CommitProperties

CREATED = '{"@":"TableCreated","definition":'
FENCED = '{"@":"Fenced"}'
RESTORED = '{"@":"Restored","to":'
EVOLVED = '{"@":"Evolved","added":'
COMPACTED = '{"@":"Compacted"}'
_STEPS = (
    (CREATED, (0,)),
    (FENCED, (0,)),
    (RESTORED, (1, 4)),
    (EVOLVED, (2,)),
    (COMPACTED, (2,)),
)
_BATCH = (3,)
"""What the holder of one token may do, in this order; it may take back a batch of its own, too."""


class CommitLostError(BackfillAssetsError):
    """A commit is not in the log, for its writer's lock was taken over."""

    def __init__(self, *, path: str, token: int, head_before: int) -> None:
        self.path, self.token = path, token
        super().__init__(
            f"the commit to {path} with token {token} is not in its log after delta_version "
            f"{head_before}: another writer has taken the table over with a larger token. Nothing "
            "was written; run again"
        )


@dataclass(frozen=True, slots=True)
class Ticket:
    """The metadata that a commit carries.

    Attributes:
        path: of the table.
        app_id: the table's name for Delta's transaction ids: one per table.
        token: the fencing token of the table's commit lock.
        metadata: the text that the commit carries; names the batch.
        known: the delta_version up to which the table was accounted for when its lock was taken; None
            for a commit that doesn't rest on it.
    """

    path: str
    app_id: str
    token: int
    metadata: str
    known: int | None = None

    @property
    def transactions(self) -> tuple[int, ...]:
        """Delta's transaction versions, of which the first that is larger than the log's is taken."""
        marked = (steps for mark, steps in _STEPS if self.metadata.startswith(mark))
        return tuple(self.token * STEPS_PER_TOKEN + step for step in next(marked, _BATCH))


@dataclass(frozen=True, slots=True)
class FoundCommit:
    """A commit that was found in the log.

    Attributes:
        delta_version: Delta's number of it.
        bytes: size of the files that were written for its cells, those of cells that kept theirs included;
            of a commit that is found in the log alone, of the files that it added.
    """

    delta_version: int
    bytes: int


def commit_properties(ticket: Ticket, transaction: int) -> CommitProperties:
    """Give deltalake's properties of a ticket's commit, which is not retried after another entry."""
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415 - only commits need it

    return CommitProperties(
        custom_metadata={"userMetadata": ticket.metadata},
        max_commit_retries=0,
        app_transactions=[Transaction(ticket.app_id, transaction)],
    )


def in_log(ticket: Ticket, head_before: int) -> FoundCommit | None:
    """Find a ticket's commit after a delta_version; None where it is not there."""
    for commit in logged_commits(ticket.path, head_before):
        token = commit.tokens.get(ticket.app_id, ABSENT) // STEPS_PER_TOKEN
        if commit.metadata == ticket.metadata and token == ticket.token:
            return FoundCommit(commit.delta_version, commit.bytes_added)
    return None
