"""Commits: rows become files, and the files become what some cells of a table consist of."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.models.column import quoted
from backfill_assets.warehouse.cell_files import (
    copy_files,
    new_folder,
    remove_folder,
    write_files,
)
from backfill_assets.warehouse.cells import cell_text
from backfill_assets.warehouse.delta_log import ABSENT, head
from backfill_assets.warehouse.housekeeping import create_table, evolve_table, fence
from backfill_assets.warehouse.log_entry import set_cells
from backfill_assets.warehouse.spark_errors import CommitConflictError
from backfill_assets.warehouse.stored_columns import stored_columns
from backfill_assets.warehouse.table_files import delete_files
from backfill_assets.warehouse.tables import delta_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.cell_files import CellFile, NamedFile
    from backfill_assets.warehouse.ticket import Committed, Ticket


@dataclass(slots=True)
class WrittenCells:
    """Files that were written for a table and that no log names yet.

    Attributes:
        path: of the table.
        folder: theirs, below it.
        files: what they are.
        offered: whether an entry that names them was begun; from then on the log alone knows.
    """

    path: str
    folder: str
    files: tuple[CellFile, ...]
    offered: bool = False

    def commit(self, wanted: Mapping[str, Sequence[CellFile]], ticket: Ticket) -> Committed:
        """Let cells consist of these files, or others; those that no cell got are taken away.

        Raises:
            CommitLostError: another writer has taken the table over.
            CommitConflictError: another commit came first.
        """
        self.offered = True
        done = set_cells(wanted, ticket)
        kept = {one.name for files in wanted.values() for one in files}
        if unused := [one.name for one in self.files if one.name not in kept]:
            with suppress(OSError):  # what is published stays published; `gc` takes them
                delete_files(self.path, unused)
        return done


@contextmanager
def written_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], path: str
) -> Iterator[WrittenCells]:
    """Write rows as files that no log names; at the end they are gone unless they were offered.

    Args:
        rows: with `_cell`.
        model: whose they are.
        cells: that the rows are of.
        path: of the table, which need not be there yet.
    """
    with _unnamed(path) as written:
        written.files = write_files(_spelled(rows, model, path), cells, path, written.folder)
        yield written


@contextmanager
def copied_cells(
    sources: Iterable[tuple[str, Sequence[NamedFile]]], path: str
) -> Iterator[WrittenCells]:
    """Copy files of other tables below this one; at the end they are gone unless they were offered.

    Args:
        sources: paths of tables, each with files of it.
        path: of the table.

    Raises:
        PinGoneError: one of the files is not there any more.
    """
    with _unnamed(path) as written:
        for number, (source, files) in enumerate(sources):
            written.files += copy_files(source, files, path, f"{written.folder}/{number}")
        yield written


@contextmanager
def _unnamed(path: str) -> Iterator[WrittenCells]:
    """Give a new folder below a table, which is gone at the end unless its files were offered."""
    written = WrittenCells(path, new_folder(), ())
    try:
        yield written
    finally:
        if not written.offered:
            remove_folder(path, written.folder)


def _spelled(rows: DataFrame, model: Model, path: str) -> DataFrame:
    """Spell nested fields as the table does, or will: most readers find them in files by letter."""
    if not any("struct<" in dtype for _, dtype in rows.dtypes):
        return rows
    at = head(path)
    there = dict(delta_schema(path, at)) if at > ABSENT else {}
    wanted = {**stored_columns(model), **there}
    return rows.selectExpr(
        *(
            f"CAST({quoted(name)} AS {wanted[name]}) AS {quoted(name)}"
            if "struct<" in dtype and wanted[name] != dtype
            else quoted(name)
            for name, dtype in rows.dtypes
        )
    )


def prepare_table(spark: Callable[[], SparkSession], model: Model, ticket: Ticket) -> None:
    """Make sure that there is a table with every column that the model declares.

    Where there was no table yet, a writer whose lock was taken over could not be fenced off. If one has
    made the table since, it is fenced off now, and what it wrote is looked at before anything follows.

    Args:
        spark: gives a session; asked only where something has to be written.
        model: whose table it is.
        ticket: of the commit that follows.

    Raises:
        CommitConflictError: the table was made by another writer since.
        DestructiveChangeError: a column has another type.
        CommitLostError: another writer has taken the table over.
    """
    made = create_table(spark, model, ticket.path, app_id=ticket.app_id, token=ticket.token)
    if ticket.known == ABSENT and not made:
        fence(ticket.path, app_id=ticket.app_id, token=ticket.token)
        raise CommitConflictError(path=ticket.path, found="another writer has just made the table")
    evolve_table(spark, model, ticket.path, app_id=ticket.app_id, token=ticket.token)


def by_cell(
    cadence: Cadence, cells: Iterable[Interval], files: Iterable[CellFile]
) -> dict[str, list[CellFile]]:
    """Sort files by cell; a cell without any is empty."""
    sorted_: dict[str, list[CellFile]] = {cell_text(cadence, cell): [] for cell in cells}
    for one in files:
        sorted_[one.cell].append(one)
    return sorted_
