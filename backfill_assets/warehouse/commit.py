"""Commits: cells enter a table in one Delta commit that names the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.column import quoted
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import cells_predicate
from backfill_assets.warehouse.delta_log import head
from backfill_assets.warehouse.housekeeping import (
    create_table,
    created_by,
    evolve_table,
    fence,
    is_ours,
    restore,
    restored_to,
)
from backfill_assets.warehouse.merge_changes import changes, merge_statement
from backfill_assets.warehouse.session import session_beside
from backfill_assets.warehouse.spark_errors import explaining
from backfill_assets.warehouse.tables import snapshot_df
from backfill_assets.warehouse.ticket import (
    SESSION_APP,
    SESSION_METADATA,
    SESSION_TOKEN,
    CommitLostError,
    Committed,
    Ticket,
    commit_nothing,
    found,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model

__all__ = [
    "CommitLostError",
    "Committed",
    "Ticket",
    "commit_cells",
    "create_table",
    "created_by",
    "evolve_table",
    "fence",
    "is_ours",
    "merge_cells",
    "prepare_table",
    "restore",
    "restored_to",
]


def commit_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], ticket: Ticket
) -> Committed:
    """Replace exactly these cells by these rows, in one commit.

    Raises:
        CommitLostError: another writer has taken the table over.
        CommitConflictError: Delta refused, because another commit came first.
        DestructiveChangeError: a column of the table has another type.
        WarehouseUnwritableError: the disk is full, read-only or not ours.
    """
    prepare_table(rows.sparkSession, model, ticket)
    before = head(ticket.path)
    replacing = writer(_by_cell(rows, cells), ticket).mode("overwrite")
    with explaining(ticket.path):
        replacing.option("replaceWhere", cells_predicate(model.cadence, cells)).save(ticket.path)
    return found(ticket, before)


def merge_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], ticket: Ticket
) -> Committed:
    """Make exactly these cells equal to these rows, touching only rows that differ.

    Cells that are still empty, and cells that are equal already, need no merge.

    Raises:
        CommitLostError: another writer has taken the table over.
        CommitConflictError: Delta refused, because another commit came first.
        DestructiveChangeError: a column of the table has another type.
        WarehouseUnwritableError: the disk is full, read-only or not ours.
    """
    prepare_table(rows.sparkSession, model, ticket)
    before = head(ticket.path)
    held = snapshot_df(rows.sparkSession, ticket.path, before)
    held = held.where(cells_predicate(model.cadence, cells))
    with explaining(ticket.path):
        if held.isEmpty():
            return commit_cells(rows, model, cells, ticket)
        different = changes(rows, held, model).cache()
        try:
            if different.isEmpty():
                commit_nothing(held, ticket)
            else:
                _merge(different, model, cells, ticket)
        finally:
            different.unpersist()
    return found(ticket, before)


def prepare_table(spark: SparkSession, model: Model, ticket: Ticket) -> None:
    """Make sure that there is a table with every column that the model declares.

    Raises:
        DestructiveChangeError: a column has another type.
        CommitLostError: another writer has taken the table over.
    """
    create_table(spark, model, ticket.path)
    evolve_table(spark, model, ticket.path, app_id=ticket.app_id, token=ticket.token)


def _merge(different: DataFrame, model: Model, cells: Sequence[Interval], ticket: Ticket) -> None:
    # MERGE takes its metadata and token from the session, and two batches of one session would
    # commit under one name: the view is a global one's, so that a session of its own can read it.
    session = session_beside(different.sparkSession)
    session.conf.set(SESSION_METADATA, ticket.text)
    session.conf.set(SESSION_APP, ticket.app_id)
    session.conf.set(SESSION_TOKEN, ticket.transaction)
    view = f"_changes_{ticket.app_id}_{ticket.token}"
    different.createOrReplaceGlobalTempView(view)
    try:
        session.sql(merge_statement(f"global_temp.{quoted(view)}", model, cells, ticket.path))
    finally:
        session.catalog.dropGlobalTempView(view)


def _by_cell(rows: DataFrame, cells: Sequence[Interval]) -> DataFrame:
    """Bring the rows of each cell together, so that a cell is one file; a large one is split."""
    if len(cells) == 1:
        return rows.hint("rebalance")
    return rows.repartition(CELL_COLUMN)
