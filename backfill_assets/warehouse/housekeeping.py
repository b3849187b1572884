"""Housekeeping: commits of ours that hold no batch. A new table, a fence, a restore, new columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backfill_assets.models.codec import dumps
from backfill_assets.models.column import quoted
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import cell_type
from backfill_assets.warehouse.delta_log import ABSENT, clear_unborn, head, logged_commits
from backfill_assets.warehouse.quoting import table_at
from backfill_assets.warehouse.session import RETENTION, batch_session
from backfill_assets.warehouse.spark_errors import explaining
from backfill_assets.warehouse.stored_columns import ColumnChanges, column_changes, stored_columns
from backfill_assets.warehouse.tables import snapshot_df
from backfill_assets.warehouse.ticket import (
    EVOLVED,
    FENCED,
    RESTORED,
    SESSION_METADATA,
    Committed,
    Ticket,
    commit_nothing,
    found,
    writer,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backfill_assets.models.model import Model

_CREATED = '{"@":"TableCreated","definition":'


def is_ours(metadata: str | None) -> bool:
    """Tell whether a commit is one of ours that holds no batch."""
    if not metadata:
        return False
    return metadata == FENCED or metadata.startswith((_CREATED, RESTORED, EVOLVED))


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
    if not metadata or not metadata.startswith(RESTORED):
        return None
    return int(metadata.removeprefix(RESTORED).removesuffix("}"))


def create_table(spark: SparkSession, model: Model, path: str) -> None:
    """Create a model's empty table, partitioned by cell, unless it is there.

    Raises:
        WarehouseUnwritableError: the place can't be written.
        CorruptTableError: something damaged lies there.
    """
    if head(path) != ABSENT:
        return
    clear_unborn(path)
    columns = {**stored_columns(model), CELL_COLUMN: cell_type(model.cadence)}
    listed = ", ".join(f"{quoted(name)} {dtype}" for name, dtype in columns.items())
    kept = {"enableExpiredLogCleanup": "false", **RETENTION}
    properties = ", ".join(f"'delta.{name}' = '{value}'" for name, value in kept.items())
    session = batch_session(spark)
    created = f"{_CREATED}{json.dumps(dumps(model))}}}"
    session.conf.set(SESSION_METADATA, created.replace("$", "\\u0024"))
    with explaining(path):
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {table_at(path)} ({listed}) USING DELTA "
            f"PARTITIONED BY ({CELL_COLUMN}) TBLPROPERTIES ({properties})"
        )


def fence(spark: SparkSession, path: str, *, app_id: str, token: int) -> Committed:
    """Commit nothing with a new token: writers with smaller tokens fail or do nothing from now on.

    Raises:
        CommitLostError: another writer has taken the table over with a larger token yet.
    """
    before = head(path)
    ticket = Ticket(path, app_id, token, FENCED)
    with explaining(path):
        commit_nothing(snapshot_df(spark, path, before), ticket)
    return found(ticket, before)


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
    ticket = Ticket(path, app_id, token, f"{RESTORED}{to_version}}}")
    old = snapshot_df(spark, path, to_version)
    where = touched_since(path, to_version, old.schema[CELL_COLUMN].dataType.simpleString())
    with explaining(path):
        if where is None:
            commit_nothing(old, ticket)
        else:
            rows = old.where(where).repartition(CELL_COLUMN)
            writer(rows, ticket).mode("overwrite").option("replaceWhere", where).save(path)
    return found(ticket, before)


def evolve_table(
    spark: SparkSession, model: Model, path: str, *, app_id: str, token: int
) -> Committed | None:
    """Give a table the columns that its model declares and it lacks, in a fenced commit.

    Rows that are there hold NULL in them. Nothing is written where nothing is lacking. A column
    that the model does not declare any more stays in the table: readers don't see it, and the
    snapshot that knew it can still be rolled back to.

    Raises:
        DestructiveChangeError: a column has another type.
        CommitLostError: another writer has taken the table over.
    """
    before = head(path)
    held = snapshot_df(spark, path, before)
    there = {one.name: one.dataType.simpleString() for one in held.schema.fields}
    changes = column_changes(model, there)
    changes.refuse_retyped(model.name, path)
    if not changes.added:
        return None
    ticket = Ticket(path, app_id, token, _evolved(changes))
    new = (f"CAST(NULL AS {dtype}) AS {quoted(name)}" for name, dtype in changes.added.items())
    with explaining(path):
        rows = held.limit(0).selectExpr("*", *new)
        writer(rows, ticket).mode("append").option("mergeSchema", "true").save(path)
    return found(ticket, before)


def _evolved(changes: ColumnChanges) -> str:
    return f"{EVOLVED}{json.dumps(changes.added)}}}"


def cells_touched(path: str, delta_version: int) -> frozenset[str]:
    """Name the cells whose files came or went since a version, as `_cell` is written."""
    return frozenset(
        text
        for commit in logged_commits(path, delta_version)
        if commit.changes_data
        for text in commit.cells
        if text is not None
    )


def touched_since(path: str, delta_version: int, cell: str) -> str | None:
    """Write Spark SQL that keeps the cells whose files came or went since; None for none."""
    touched = cells_touched(path, delta_version)
    listed = ", ".join(f"CAST('{text}' AS {cell})" for text in sorted(touched))
    return f"{CELL_COLUMN} IN ({listed})" if touched else None
