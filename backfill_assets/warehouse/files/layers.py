"""Layers: the rows of a model where one table lies over others.

A plan's workspace holds only the cells that the plan has built; every other cell is read from the
tables under it. All reading of a model's rows goes through `rows_of`, so that a batch, its audits
and its readers see the same rows.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import reduce
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, quoted
from backfill_assets.warehouse.files.cell_files import (
    CELL_OF_FOLDER,
    NO_CELL,
    files_at,
    files_of,
    folder_says_cell,
    missing_files,
    partition_columns,
)
from backfill_assets.warehouse.files.cells import cell_text, cell_type, cells_predicate, text_at
from backfill_assets.warehouse.files.plain_tables import can_be_named, plain_table
from backfill_assets.warehouse.files.stored_columns import stored_columns
from backfill_assets.warehouse.files.tables import Table, delta_rows
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.warehouse.files.cell_files import NamedFile

EVERY_ROW = "TRUE"
"""The condition of a part that is a whole table."""


class ResolvedLayer(NamedTuple):
    """One of the tables that make up a model.

    Attributes:
        path: of the Delta table.
        delta_version: its pin.
        where: Spark SQL over the column `_cell`: only these rows of it count.
    """

    path: str
    delta_version: int
    where: str


@dataclass(frozen=True, slots=True)
class FilesRead:
    """Files of one table at one version, and the cells that are read from them.

    Attributes:
        path: of the table.
        cells: as `cells.cell_text` writes them; other cells in the files are not read.
        files: every file that may hold rows of the cells.
    """

    path: str
    cells: tuple[str, ...]
    files: tuple[NamedFile, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Name those of the files that are not there, or not as large as they were."""
        return missing_files(self.path, self.files)


class PartFiles(NamedTuple):
    """The files of one table that a part of a model's rows comes from.

    Attributes:
        path: of the table.
        where: Spark SQL over `_cell` that keeps those rows; None where every row of the files counts.
        files: their names below the table.
    """

    path: str
    where: str | None
    files: tuple[str, ...]


def table_of(pins: Sequence[InputPin], located: Callable[[str], str]) -> Table:
    """Give the pins of one model or source as one table, the first over the others.

    Args:
        pins: of the tables.
        located: gives the path of a place, as the store knows it.
    """
    top, *under = (Table(located(pin.path), pin.delta_version, pin.cells) for pin in pins)
    return replace(top, under=tuple(under))


def without(table: Table, cells: IntervalSet) -> Table:
    """Give a table without the rows of these cells in the layers under it.

    A plan's cells that are still to be built are then empty, whatever the layers hold.
    """
    nothing = Table("", ABSENT, cells)
    return replace(table, under=(nothing, *table.under))


def outside(table: Table, cells: IntervalSet) -> Table:
    """Give a table without the rows of these cells."""
    return Table("", ABSENT, cells, under=(table,))


def table_read(
    pins: Sequence[InputPin], located: Callable[[str], str], certain: IntervalSet
) -> Table:
    """Give the tables of a pointer as one, without the cells that its plan is still to build.

    Args:
        pins: of the tables.
        located: gives the path of a place, as the store knows it.
        certain: the pointer's cells that only its own table answers for.
    """
    table = table_of(pins, located)
    return without(table, certain) if certain else table


def parts_of(
    cadence: Cadence, table: Table, cells: IntervalSet | None = None
) -> tuple[ResolvedLayer, ...]:
    """Give the part that each table reads, the upper first; tables without a part are left out.

    Args:
        cadence: of the model.
        table: what is read.
        cells: only these; None for every cell.
    """
    return tuple(
        ResolvedLayer(answer.layer.path, answer.layer.delta_version, answer.where(cadence))
        for answer in _answers(table, cells)
    )


def files_of_parts(cadence: Cadence, table: Table) -> tuple[PartFiles, ...]:
    """Name the files that each table's part of all rows comes from, as `parts_of` does the tables.

    Where each cell has files of its own, the files alone say which cells count; else they hold rows of
    other cells, too.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    return tuple(_part_files(cadence, answer) for answer in _answers(table, None))


def _part_files(cadence: Cadence, answer: _Answer) -> PartFiles:
    path, where = answer.layer.path, answer.where(cadence)
    files = answer.files(cadence, files_at(path, answer.layer.delta_version))
    by_cell = where == EVERY_ROW or bool(partition_columns(path))
    return PartFiles(path, None if by_cell else where, _names(files))


def _names(files: Iterable[NamedFile]) -> tuple[str, ...]:
    return tuple(sorted(file.name for file in files))


def _texts(cadence: Cadence, cells: IntervalSet) -> tuple[str, ...]:
    return tuple(cell_text(cadence, cell) for cell in cadence.cells(cells))


def rows_of(
    spark: SparkSession, model: Model, table: Table, cells: IntervalSet | None = None
) -> DataFrame:
    """Read a model's rows with every stored column and `_cell`.

    A column that was declared later, and that a table lacks, is NULL in that table's rows.

    Args:
        spark: a session.
        model: whose rows they are.
        table: what is read, layers included.
        cells: only these; None for every cell.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    frames = [_rows(spark, model, answer) for answer in _answers(table, cells)]
    return reduce(lambda frame, other: frame.unionByName(other), frames or [_no_rows(spark, model)])


def _no_rows(spark: SparkSession, model: Model) -> DataFrame:
    columns = {**stored_columns(model), CELL_COLUMN: cell_type(model.cadence)}
    return spark.createDataFrame([], ", ".join(f"{quoted(c)} {t}" for c, t in columns.items()))


def files_read(model: Model, table: Table, cells: IntervalSet) -> tuple[FilesRead, ...]:
    """Name the files that some cells are read from, by the table that they lie in.

    Of cells that are cut otherwise than the model's, every cell that they overlap is read.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    by_table: list[FilesRead] = []
    for layer, inside in cells_by_table(table, model.cadence.snap_out(cells)):
        texts = _texts(model.cadence, inside)
        files = files_at(layer.path, layer.delta_version, texts)
        by_table.append(FilesRead(layer.path, texts, files))
    return tuple(by_table)


def cells_by_table(table: Table, cells: IntervalSet) -> Iterator[tuple[Table, IntervalSet]]:
    """Give the cells that are read from each of the tables; a table without any is left out."""
    for answer in _answers(table, cells):
        if answer.inside is not None:  # as always where cells are asked for
            yield answer.layer, answer.inside


@dataclass(frozen=True, slots=True)
class _Answer:
    """A table that rows come from, and the cells that it answers for.

    Attributes:
        layer: the table.
        inside: the cells whose rows come from it; None for every cell but the hidden ones.
        hidden: cells that tables above it answer for.
    """

    layer: Table
    inside: IntervalSet | None
    hidden: IntervalSet

    def where(self, cadence: Cadence) -> str:
        """Write the condition on these cells."""
        if self.inside is not None:
            return cells_predicate(cadence, self.inside)
        return f"NOT ({cells_predicate(cadence, self.hidden)})" if self.hidden else EVERY_ROW

    def files(self, cadence: Cadence, files: Iterable[NamedFile]) -> tuple[NamedFile, ...]:
        """Choose the files that may hold rows of these cells.

        Where each cell has files of its own, these hold no other cells; else the rows still need `where`.
        """
        if self.inside is not None:
            spans = _spans(cadence, self.inside)
            return tuple(file for file in files if _reaches_into(file, spans))
        spans = _spans(cadence, self.hidden)
        return tuple(
            file
            for file in files
            if not (spans and file.first == file.last)
            or not (file.first == NO_CELL or _reaches_into(file, spans))
        )


def _spans(cadence: Cadence, cells: IntervalSet) -> list[tuple[str, str]]:
    """Give the first cell of each stretch, and the first one after it, as the reach of a file is written."""
    if cells and cadence.unit is Unit.WHOLE:
        return [(cell_text(cadence, WHOLE_CELL), f"{cell_text(cadence, WHOLE_CELL)}~")]
    return [(text_at(cadence, span.start), text_at(cadence, span.end)) for span in cells]


def _reaches_into(file: NamedFile, spans: Sequence[tuple[str, str]]) -> bool:
    """Whether a file may hold a cell of some stretches, which are in order: it is held against one of them."""
    at = bisect_right(spans, file.first, key=itemgetter(1))
    return at < len(spans) and spans[at][0] <= file.last


def _answers(table: Table, cells: IntervalSet | None) -> Iterator[_Answer]:
    """Give each table that rows come from, the upper first, for these cells or for all."""
    above = IntervalSet.empty()
    for layer in _flat(table):
        requested_cells = (
            cells if layer.cells is None else layer.cells if cells is None else layer.cells & cells
        )
        inside = None if requested_cells is None else requested_cells - above
        if layer.delta_version > ABSENT and (inside is None or inside):
            yield _Answer(layer, inside, above)
        if layer.cells is None:
            break
        above |= layer.cells


def _flat(table: Table) -> Iterator[Table]:
    yield table
    for layer in table.under:
        yield from _flat(layer)


def _rows(spark: SparkSession, model: Model, answer: _Answer) -> DataFrame:
    layer = answer.layer
    with explaining_errors(layer.path):
        rows, cell = _by_name(spark, model, answer) or _by_delta(spark, model.cadence, answer)
    names = set(rows.columns)
    return rows.selectExpr(
        *(
            quoted(name) if name in names else f"CAST(NULL AS {dtype}) AS {quoted(name)}"
            for name, dtype in stored_columns(model).items()
        ),
        cell,
    )


def _by_delta(spark: SparkSession, cadence: Cadence, answer: _Answer) -> tuple[DataFrame, str]:
    rows = delta_rows(spark, answer.layer.path, answer.layer.delta_version)
    return rows.where(answer.where(cadence)), CELL_COLUMN


def _by_name(spark: SparkSession, model: Model, answer: _Answer) -> tuple[DataFrame, str] | None:
    """Read the rows from files by their names, with SQL for `_cell`; None where that can't be done."""
    plain = plain_table(answer.layer.path, answer.layer.delta_version)
    if plain is None or plain.partitioned_by not in {(), (CELL_COLUMN,)}:
        return None
    files = answer.files(model.cadence, files_of(plain.log))
    names = _names(files)
    in_cells = bool(plain.partitioned_by)
    if not can_be_named(names) or (in_cells and not all(map(folder_says_cell, files))):
        return None
    if not names:
        return _no_rows(spark, model), CELL_COLUMN
    if in_cells:  # each file holds one cell, by which it was chosen
        return plain.rows(spark, names), f"{CELL_OF_FOLDER} AS {CELL_COLUMN}"
    return plain.rows(spark, names).where(answer.where(model.cadence)), CELL_COLUMN
