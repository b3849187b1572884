"""Copy cells into a published table from another table, or from an older pin of the same one.

A promotion copies a workspace's cells; a rollback or undo within a version copies cells of the
table's own past. Both are one commit that names itself, so that the process which finishes a dead
publication finds it in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.warehouse.files.cell_files import files_at
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.commit import (
    copied_cells,
    old_cells,
    prepare_table,
    written_cells,
)
from backfill_assets.warehouse.files.housekeeping import cells_touched
from backfill_assets.warehouse.files.layers import files_read, rows_of
from backfill_assets.warehouse.files.tables import Table, columns_in, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT, head, logged_commits, opened_log
from backfill_assets.warehouse.rows.doubles import may_be_twice, refuse_doubles
from backfill_assets.warehouse.rows.moves import key_in_another_cell, keys_in_other_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.log.delta_log import LoggedCommit
    from backfill_assets.warehouse.log.ticket import FoundCommit, Ticket


def copy_cells(  # noqa: PLR0913, PLR0917 - what is copied, from where, to where
    spark: Callable[[], SparkSession],
    model: Model,
    source: Table,
    cells: IntervalSet,
    differing: IntervalSet,
    ticket: Ticket,
    over: int | None = None,
) -> FoundCommit:
    """Replace the differing cells of a published table by copies of a workspace's files, in one commit.

    A commit is made in any case, because its metadata describes the content of all the cells.

    Args:
        spark: gives a session; asked only where rows have to be read, or columns to be added.
        model: whose table it is; columns that it declares and the table lacks are added first.
        source: the workspace's table at its pin.
        cells: every cell that the workspace built.
        differing: those whose content differs from the published one.
        ticket: what the commit says of itself; names the published table.
        over: the delta_version of the published table that the workspace was opened over; None where
            that is not known.

    Raises:
        DoubleMeanwhileError: a copied unique value came into another cell since.
        DeclarationError: a copied key is also in a published cell that is not copied.
        CommitLostError: another writer has taken the table over.
        RequestError: a column of the published table has another type.
        PinGoneError: a file of the workspace is not there any more.
    """
    prepare_table(spark, model, ticket)
    if differing:
        _refuse_twice(spark, model, source, (cells, differing), ticket.path, over)
    named = tuple(model.cadence.cells(differing))
    if not differing or _fits(source, ticket.path):
        old_files = files_read(model, source, differing)
        copies = copied_cells(old_files, ticket.path, model.cadence)
    else:
        copies = written_cells(
            rows_of(spark(), model, source, differing), model, named, ticket.path
        )
    with copies as written:
        texts = {cell_text(model.cadence, cell) for cell in named}
        return written.commit(texts, written.files, ticket)


def restore_cells(
    spark: Callable[[], SparkSession],
    model: Model,
    to_version: int,
    cells: IntervalSet,
    differing: IntervalSet,
    ticket: Ticket,
) -> FoundCommit:
    """Give the differing cells of a table the files back that they had at an older delta_version.

    Args:
        spark: gives a session; asked only where rows have to be read.
        model: the snapshot that the table goes back to.
        to_version: the delta_version whose content comes back.
        cells: every cell that then holds its content of that version.
        differing: those whose content differs now.
        ticket: what the commit says of itself.

    Raises:
        DoubleMeanwhileError: a unique value that comes back is in another cell by now.
        DeclarationError: a key that comes back is in another cell by now.
        CommitLostError: another writer has taken the table over.
        PinGoneError: a file of that version is not there any more.
    """
    if differing:
        old = Table(ticket.path, to_version)
        _refuse_twice(spark, model, old, (cells, differing), ticket.path, to_version)
    texts = {cell_text(model.cadence, cell) for cell in model.cadence.cells(differing)}
    files = files_at(ticket.path, to_version, texts)
    with old_cells(ticket.path, model.cadence, files, texts) as written:
        return written.commit(texts, written.files, ticket)


def find_commit(path: str, since: int, batch_id: str) -> LoggedCommit | None:
    """Find the commit of a batch, or of a copy, after a delta_version; None when it is not there.

    Raises:
        CorruptTableError: the log is damaged.
    """
    for commit in logged_commits(path, since):
        batch = BatchCommit.from_json(commit.metadata)
        if batch is not None and batch.batch_id == batch_id:
            return commit
    return None


def _fits(source: Table, path: str) -> bool:
    """Whether files of a source can be files of the table at a path.

    They must be cut in the same way, and hold no column that the table lacks: such a column would
    appear with another meaning once the table gains one of the same name.
    """
    columns, cut = _columns_and_cut(Table(path, head(path)))
    others = (
        _columns_and_cut(table) for table in (source, *source.under) if table.delta_version > ABSENT
    )
    return all(other_cut == cut and columns >= other for other, other_cut in others)


def _columns_and_cut(table: Table) -> tuple[set[tuple[str, str]], list[str]]:
    """Read the columns of a table, with their types, and those by which it is partitioned, from its log at once."""
    log = opened_log(table.path, table.delta_version)
    return set(columns_in(log)), log.metadata().partition_columns


def _refuse_twice(
    spark: Callable[[], SparkSession],
    model: Model,
    source: Table,
    cells: tuple[IntervalSet, IntervalSet],
    path: str,
    since: int | None,
) -> None:
    """Refuse keys that the published table holds in cells which the source does not answer for."""
    if not may_be_twice(model):
        return
    (answered, copied), now = cells, table_now(path)
    cells_ = tuple(model.cadence.cells(answered))
    if since is not None and not cells_touched(model.cadence, path, since) - answered:
        return  # every other cell is as it was when the source's rows were audited beside it
    rows = rows_of(spark(), model, source, copied)
    refuse_doubles(rows, model, cells_, now, since)
    clashes = keys_in_other_cells(rows, model, cells_, now)
    if clashes:
        raise key_in_another_cell(model, clashes)
