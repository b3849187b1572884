"""Commit rows: write them as files, and replace the files of some cells of a table by them."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import quoted
from backfill_assets.warehouse.files.cell_files import (
    cells_in,
    copy_files,
    described,
    files_at,
    has_blocks,
    new_folder,
    remove_folder,
    whole_and_partly,
    write_files,
)
from backfill_assets.warehouse.files.cells import block_expression, cell_text
from backfill_assets.warehouse.files.housekeeping import create_table, evolve_table, fence, reach
from backfill_assets.warehouse.files.log_entry import set_cells
from backfill_assets.warehouse.files.stored_columns import stored_columns
from backfill_assets.warehouse.files.table_files import delete_files
from backfill_assets.warehouse.files.tables import delta_schema
from backfill_assets.warehouse.log.delta_log import ABSENT, head
from backfill_assets.warehouse.spark.spark_errors import CommitConflictError, PinGoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.cell_files import CellFile, NamedFile
    from backfill_assets.warehouse.files.layers import FilesRead
    from backfill_assets.warehouse.log.ticket import FoundCommit, Ticket


@dataclass(slots=True)
class WrittenCells:
    """Files that were written for a table and that no log names yet.

    Attributes:
        path: of the table.
        cadence: of its cells.
        folder: theirs, below it.
        files: the written files.
        offered: whether an entry that names them was begun; from then on only the log can tell whether
            they are published.
    """

    path: str
    cadence: Cadence
    folder: str = field(default_factory=new_folder)
    files: tuple[CellFile, ...] = ()
    offered: bool = False
    # Beside the folder of the batch's own rows, which are read from it.
    _beside: str = field(default_factory=new_folder)
    _held: dict[str, frozenset[str]] = field(default_factory=dict)
    _rests: dict[tuple[str, frozenset[str]], tuple[CellFile, ...]] = field(default_factory=dict)

    def commit(
        self, cells: Collection[str], files: Sequence[CellFile], ticket: Ticket
    ) -> FoundCommit:
        """Replace the files of cells by the given ones; written files that no cell uses are removed.

        The rows of other cells in a replaced file are written again as a file of theirs.

        Raises:
            CommitLostError: another writer has taken the table over.
            CommitConflictError: another commit came first.
        """
        self.offered = True
        requested_cells, used = frozenset(cells), {file.name for file in files}

        def rest(file: NamedFile) -> tuple[CellFile, ...] | None:
            remaining = self._rest(file, requested_cells)
            used.update(other.name for other in remaining or ())
            return remaining

        done = set_cells(requested_cells, files, rest, ticket)
        done = replace(done, bytes=sum(file.bytes for file in self.files))
        written = (*self.files, *chain.from_iterable(self._rests.values()))
        if unused := [file.name for file in written if file.name not in used]:
            with suppress(OSError):  # published cells stay; `gc` removes these files
                delete_files(self.path, unused)
        return done

    def prepare(self, cells: Iterable[str]) -> None:
        """Write the rows that other cells have in the files of these, before the table's lock is taken.

        Under the lock only rows that were added to the cells' blocks since then are written.
        """
        requested_cells = frozenset(cells)
        for file in files_at(self.path, head(self.path), requested_cells):
            self._rest(file, requested_cells)

    def discard(self) -> None:
        """Remove all files."""
        remove_folder(self.path, self.folder)
        remove_folder(self.path, self._beside)

    def _rest(
        self, file: NamedFile, requested_cells: frozenset[str]
    ) -> tuple[CellFile, ...] | None:
        """Give the files that replace a file for its other cells; None if it has none of the asked ones.

        Raises:
            PinGoneError: it is gone, and may have held other cells, too.
        """
        if file.first == file.last:
            return ()
        if file.name not in self._held:
            self._held[file.name] = self._cells_in(file)
        file_cells = self._held[file.name]
        if not file_cells & requested_cells:
            return None
        key = file.name, file_cells & requested_cells
        if key not in self._rests:
            folder, others = f"{self._beside}/{len(self._rests)}", file_cells - requested_cells
            remaining = copy_files(self.path, [file], others, self.path, folder) if others else ()
            self._rests[key] = remaining
        return self._rests[key]

    def _cells_in(self, file: NamedFile) -> frozenset[str]:
        """Name the cells of a file, all that it may hold if it is gone; it may be where all of them get new rows."""
        try:
            return cells_in(self.path, file)
        except PinGoneError:
            cells = self.cadence.cells(IntervalSet.of([reach(self.cadence, file)]))
            return frozenset(cell_text(self.cadence, cell) for cell in cells)


@contextmanager
def written_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], path: str
) -> Iterator[WrittenCells]:
    """Write rows as files that no log names; at the end they are removed unless they were offered.

    Args:
        rows: with `_cell`.
        model: whose they are.
        cells: that the rows are of.
        path: of the table, which need not be there yet.
    """
    with unwritten_cells(path, model.cadence) as written:
        spelled, single = _spelled(rows, model, path), len(cells) == 1
        block = block_expression(model.cadence) if has_blocks(model.cadence, path) else None
        ranges = model.key_ranges.conditions() if model.key_ranges is not None else ()
        parts = [spelled.where(rows_of_range) for rows_of_range in ranges] or [spelled]
        written.files = write_files(parts, block, path, written.folder, together=single)
        if block is not None:
            written.prepare(cell_text(model.cadence, cell) for cell in cells)
        yield written


@contextmanager
def copied_cells(
    sources: Iterable[FilesRead], path: str, cadence: Cadence
) -> Iterator[WrittenCells]:
    """Copy cells of other tables below this one; at the end they are removed unless they were offered.

    Args:
        sources: files of tables, and the cells that are read from them.
        path: of the table.
        cadence: of its cells.

    Raises:
        PinGoneError: one of the files is not there any more.
    """
    with unwritten_cells(path, cadence) as written:
        for number, source in enumerate(sources):
            folder = f"{written.folder}/{number}"
            written.files += copy_files(source.path, source.files, source.cells, path, folder)
        yield written


@contextmanager
def old_cells(
    path: str, cadence: Cadence, files: Sequence[NamedFile], cells: Collection[str]
) -> Iterator[WrittenCells]:
    """Give files that a table's cells had, without their rows of other cells.

    Raises:
        PinGoneError: one of the files is not there any more.
    """
    with unwritten_cells(path, cadence) as written:
        whole, partly = whole_and_partly(path, files, cells)
        parts = copy_files(path, partly, cells, path, written.folder)
        written.files = (*described(path, whole), *parts)
        yield written


@contextmanager
def unwritten_cells(path: str, cadence: Cadence) -> Iterator[WrittenCells]:
    """Give a new folder below a table, which is removed at the end unless its files were offered."""
    written = WrittenCells(path, cadence)
    try:
        yield written
    finally:
        if not written.offered:
            written.discard()


def _spelled(rows: DataFrame, model: Model, path: str) -> DataFrame:
    """Spell nested fields as the table does, or will: most readers match them case-sensitively."""
    if not any("struct<" in dtype for _, dtype in rows.dtypes):
        return rows
    at = head(path)
    table_types = dict(delta_schema(path, at)) if at > ABSENT else {}
    types = {**stored_columns(model), **table_types}
    return rows.selectExpr(
        *(
            f"CAST({quoted(name)} AS {types[name]}) AS {quoted(name)}"
            if "struct<" in dtype and types[name] != dtype
            else quoted(name)
            for name, dtype in rows.dtypes
        )
    )


def prepare_table(spark: Callable[[], SparkSession], model: Model, ticket: Ticket) -> None:
    """Make sure that there is a table with every column that the model declares.

    Before a table exists, a writer whose lock was taken over can't be fenced off. If one has made the
    table since, it is fenced off now, and its commits are read before the next step.

    Args:
        spark: gives a session; asked only where something has to be written.
        model: whose table it is.
        ticket: of the commit that follows.

    Raises:
        CommitConflictError: the table was made by another writer since.
        RequestError: a column has another type.
        CommitLostError: another writer has taken the table over.
    """
    made = create_table(spark, model, ticket.path, app_id=ticket.app_id, token=ticket.token)
    if ticket.known == ABSENT and not made:
        fence(ticket.path, app_id=ticket.app_id, token=ticket.token)
        raise CommitConflictError(path=ticket.path, found="another writer has just made the table")
    evolve_table(spark, model, ticket.path, app_id=ticket.app_id, token=ticket.token)
