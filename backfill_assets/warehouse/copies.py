"""Copies: cells of a published table become what another table, or an older pin of it, holds.

A promotion copies a workspace's cells; a rollback or undo within a version copies cells of the
table's own past. Both are one commit that names itself, so that whoever must finish what a dead
process began finds it in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.warehouse.commit import commit_cells, prepare_table
from backfill_assets.warehouse.delta_log import head, logged_commits
from backfill_assets.warehouse.doubles import refuse_doubles
from backfill_assets.warehouse.layers import rows_of
from backfill_assets.warehouse.moves import KeyInAnotherCellError, keys_in_other_cells
from backfill_assets.warehouse.spark_errors import explaining
from backfill_assets.warehouse.tables import Table, snapshot_df, table_now
from backfill_assets.warehouse.ticket import Committed, Ticket, commit_nothing, found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.delta_log import LoggedCommit


def copy_cells(  # noqa: PLR0913, PLR0917 - what is copied from where to where
    spark: SparkSession,
    model: Model,
    source: Table,
    cells: IntervalSet,
    differing: IntervalSet,
    ticket: Ticket,
    over: int | None = None,
) -> Committed:
    """Replace the differing cells of a published table by a workspace's rows, in one commit.

    A commit is made in any case, for its metadata says of all the cells what they hold.

    Args:
        spark: a session.
        model: whose table it is; columns that it declares and the table lacks are added first.
        source: the workspace's table at its pin.
        cells: all that the workspace built.
        differing: those whose content is not what is published.
        ticket: what the commit says of itself; names the published table.
        over: the delta_version of the published table that the workspace was opened over; None where
            that is not known.

    Raises:
        DoubleMeanwhileError: a copied value that must be single came into another cell since.
        KeyInAnotherCellError: a copied key is also in a published cell that is not copied.
        CommitLostError: another writer has taken the table over.
        DestructiveChangeError: a column of the published table has another type.
    """
    prepare_table(spark, model, ticket)
    if not differing:
        return _nothing(spark, ticket)
    _refuse_twice(spark, model, source, (cells, differing), ticket.path, over)
    rows = rows_of(spark, model, source, differing)
    return commit_cells(rows, model, tuple(model.cadence.cells(differing)), ticket)


def restore_cells(
    spark: SparkSession, model: Model, to_version: int, cells: IntervalSet, ticket: Ticket
) -> Committed:
    """Bring some cells of a table back to what they held at an older delta_version, in one commit.

    Args:
        spark: a session.
        model: the snapshot that the table goes back to.
        to_version: the delta_version whose content comes back.
        cells: which; the others stay as they are.
        ticket: what the commit says of itself.

    Raises:
        DoubleMeanwhileError: the same of another value that must be single.
        KeyInAnotherCellError: a key that comes back is in another cell by now.
        CommitLostError: another writer has taken the table over.
        PinGoneError: that version can't be read any more.
    """
    old = Table(ticket.path, to_version)
    if not cells:
        return _nothing(spark, ticket)
    _refuse_twice(spark, model, old, (cells, cells), ticket.path, to_version)
    rows = rows_of(spark, model, old, cells)
    return commit_cells(rows, model, tuple(model.cadence.cells(cells)), ticket)


def find_commit(path: str, since: int, batch_id: str) -> LoggedCommit | None:
    """Find the commit of a batch, or of a copy, after a delta_version; None when it is not there.

    Raises:
        CorruptTableError: the log is damaged.
    """
    for commit in logged_commits(path, since):
        said = BatchCommit.from_json(commit.metadata)
        if said is not None and said.batch_id == batch_id:
            return commit
    return None


def _nothing(spark: SparkSession, ticket: Ticket) -> Committed:
    before = head(ticket.path)
    with explaining(ticket.path):
        commit_nothing(snapshot_df(spark, ticket.path, before), ticket)
    return found(ticket, before)


def _refuse_twice(
    spark: SparkSession,
    model: Model,
    source: Table,
    cells: tuple[IntervalSet, IntervalSet],
    path: str,
    since: int | None,
) -> None:
    """Refuse keys that the published table holds in cells which the source does not answer for."""
    answered, copied = cells
    rows, now = rows_of(spark, model, source, copied), table_now(path)
    cells_ = tuple(model.cadence.cells(answered))
    refuse_doubles(rows, model, cells_, now, since)
    clashes = keys_in_other_cells(rows, model, cells_, now)
    if clashes:
        raise KeyInAnotherCellError.of(model, clashes)
