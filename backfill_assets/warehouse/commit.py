"""Commits: a batch's cells enter its table in one Delta commit that names the batch.

Every commit of a table carries the same transaction id with a larger token than the one before, so
Delta refuses or ignores a writer whose lock was taken over; and every commit is looked up in the
log afterwards, since Delta ignores such a writer without an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.codec import dumps
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import cell_type, cells_predicate
from backfill_assets.warehouse.delta_log import ABSENT, STEPS_PER_TOKEN, head, logged_commits
from backfill_assets.warehouse.merge_changes import changes, merge_statement
from backfill_assets.warehouse.session import RETENTION, batch_session
from backfill_assets.warehouse.spark_errors import explaining
from backfill_assets.warehouse.stored_columns import stored_columns
from backfill_assets.warehouse.tables import snapshot_df

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameWriter

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model

_SESSION_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_SESSION_APP = "spark.databricks.delta.write.txnAppId"
_SESSION_TOKEN = "spark.databricks.delta.write.txnVersion"  # noqa: S105 - no password
_CREATED = '{"@":"TableCreated","definition":'
_FENCED = '{"@":"Fenced"}'
_RESTORED = '{"@":"Restored","to":'


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
        step = 0 if self.metadata == _FENCED else 1 if self.metadata.startswith(_RESTORED) else 2
        return str(self.token * STEPS_PER_TOKEN + step)


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was found in the log.

    Attributes:
        delta_version: Delta's number of it.
        bytes: size of the files that it added.
    """

    delta_version: int
    bytes: int


def commit_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], ticket: Ticket
) -> Committed:
    """Replace exactly these cells by these rows, in one commit.

    Raises:
        CommitLostError: another writer has taken the table over.
        CommitConflictError: Delta refused, because another commit came first.
        WarehouseUnwritableError: the disk is full, read-only or not ours.
    """
    create_table(rows.sparkSession, model, ticket.path)
    before = head(ticket.path)
    writer = _writer(_by_cell(rows, cells), ticket).mode("overwrite")
    with explaining(ticket.path):
        writer.option("replaceWhere", cells_predicate(model.cadence, cells)).save(ticket.path)
    return _found(ticket, before)


def merge_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], ticket: Ticket
) -> Committed:
    """Make exactly these cells equal to these rows, touching only rows that differ.

    Cells that are still empty, and cells that are equal already, need no merge.

    Raises:
        CommitLostError: another writer has taken the table over.
        CommitConflictError: Delta refused, because another commit came first.
        WarehouseUnwritableError: the disk is full, read-only or not ours.
    """
    create_table(rows.sparkSession, model, ticket.path)
    before = head(ticket.path)
    held = snapshot_df(rows.sparkSession, ticket.path, before)
    held = held.where(cells_predicate(model.cadence, cells))
    with explaining(ticket.path):
        if held.isEmpty():
            return commit_cells(rows, model, cells, ticket)
        different = changes(rows, held, model).cache()
        try:
            if different.isEmpty():
                _commit_nothing(held, ticket)
            else:
                _merge(different, model, cells, ticket)
        finally:
            different.unpersist()
    return _found(ticket, before)


def fence(spark: SparkSession, path: str, *, app_id: str, token: int) -> Committed:
    """Commit nothing with a new token: writers with smaller tokens fail or do nothing from now on.

    Raises:
        CommitLostError: another writer has taken the table over with a larger token yet.
    """
    before = head(path)
    ticket = Ticket(path, app_id, token, _FENCED)
    with explaining(path):
        _commit_nothing(snapshot_df(spark, path, before), ticket)
    return _found(ticket, before)


def restore(
    spark: SparkSession, path: str, to_version: int, *, app_id: str, token: int
) -> Committed:
    """Bring a table's content back to what it was, in a fenced commit.

    Only the cells that were touched since are rewritten. Delta's own RESTORE would copy nothing,
    but takes no token: a writer that sleeps through a takeover could still run it.

    Args:
        spark: a session.
        path: of the table.
        to_version: the delta_version whose content comes back.
        app_id: the table's name for transaction ids.
        token: of the commit lock.

    Raises:
        CommitLostError: another writer has taken the table over.
        PinGoneError: that version can't be read any more.
    """
    before = head(path)
    ticket = Ticket(path, app_id, token, f"{_RESTORED}{to_version}}}")
    old = snapshot_df(spark, path, to_version)
    where = _touched_since(path, to_version, old.schema[CELL_COLUMN].dataType.simpleString())
    with explaining(path):
        if where is None:
            _commit_nothing(old, ticket)
        else:
            writer = _writer(old.where(where).repartition(CELL_COLUMN), ticket).mode("overwrite")
            writer.option("replaceWhere", where).save(path)
    return _found(ticket, before)


def is_ours(metadata: str | None) -> bool:
    """Tell whether a commit is one of ours that holds no batch: a new table, fence or restore."""
    created, restored = created_by(metadata), restored_to(metadata)
    return metadata == _FENCED or created is not None or restored is not None


def created_by(metadata: str | None) -> str | None:
    """Give the stored model that a new table was made for; None for other commits.

    Snapshots of one version differ in words only, so this is enough to run it again after the
    state was lost.
    """
    if not metadata or not metadata.startswith(_CREATED):
        return None
    return json.loads(metadata)["definition"]


def restored_to(metadata: str | None) -> int | None:
    """Give the delta_version whose content a restore of ours brought back; None for others."""
    if not metadata or not metadata.startswith(_RESTORED):
        return None
    return int(metadata.removeprefix(_RESTORED).removesuffix("}"))


def create_table(spark: SparkSession, model: Model, path: str) -> None:
    """Create a model's empty table, partitioned by cell, unless it is there.

    Raises:
        WarehouseUnwritableError: the place can't be written.
        CorruptTableError: something damaged lies there.
    """
    if head(path) != ABSENT:
        return
    columns = {**stored_columns(model), CELL_COLUMN: cell_type(model.cadence)}
    listed = ", ".join(f"`{name}` {dtype}" for name, dtype in columns.items())
    kept = {"enableExpiredLogCleanup": "false", **RETENTION}
    properties = ", ".join(f"'delta.{name}' = '{value}'" for name, value in kept.items())
    session = batch_session(spark)
    created = f"{_CREATED}{json.dumps(dumps(model))}}}"
    session.conf.set(_SESSION_METADATA, created.replace("$", "\\u0024"))
    with explaining(path):
        session.sql(
            f"CREATE TABLE IF NOT EXISTS delta.`{path}` ({listed}) USING DELTA "
            f"PARTITIONED BY ({CELL_COLUMN}) TBLPROPERTIES ({properties})"
        )


def _merge(different: DataFrame, model: Model, cells: Sequence[Interval], ticket: Ticket) -> None:
    # MERGE takes its metadata and token from the session, and two batches of one session would
    # commit under one name: the view is a global one's, so that a session of its own can read it.
    session = batch_session(different.sparkSession)
    session.conf.set(_SESSION_METADATA, ticket.text)
    session.conf.set(_SESSION_APP, ticket.app_id)
    session.conf.set(_SESSION_TOKEN, ticket.transaction)
    view = f"_changes_{ticket.app_id}_{ticket.token}"
    different.createOrReplaceGlobalTempView(view)
    try:
        session.sql(merge_statement(f"global_temp.`{view}`", model, cells, ticket.path))
    finally:
        session.catalog.dropGlobalTempView(view)


def _commit_nothing(rows: DataFrame, ticket: Ticket) -> None:
    _writer(rows.limit(0), ticket).mode("append").save(ticket.path)


def _touched_since(path: str, delta_version: int, cell: str) -> str | None:
    """Write Spark SQL that keeps the cells whose files came or went since; None for none."""
    touched = {
        text
        for commit in logged_commits(path, delta_version)
        if commit.changes_data
        for text in commit.cells
        if text is not None
    }
    listed = ", ".join(f"CAST('{text}' AS {cell})" for text in sorted(touched))
    return f"{CELL_COLUMN} IN ({listed})" if touched else None


def _writer(rows: DataFrame, ticket: Ticket) -> DataFrameWriter:
    return (
        rows.write.format("delta")
        .option("userMetadata", ticket.text)
        .option("txnAppId", ticket.app_id)
        .option("txnVersion", ticket.transaction)
    )


def _by_cell(rows: DataFrame, cells: Sequence[Interval]) -> DataFrame:
    """Bring the rows of each cell together, so that a cell is one file; a large one is split."""
    if len(cells) == 1:
        return rows.hint("rebalance")
    return rows.repartition(CELL_COLUMN)


def _found(ticket: Ticket, head_before: int) -> Committed:
    for commit in logged_commits(ticket.path, head_before):
        if commit.metadata == ticket.text:
            return Committed(commit.delta_version, commit.bytes_added)
    raise CommitLostError(path=ticket.path, token=ticket.token, head_before=head_before)
