"""Layers: the rows of a model where one table lies over others.

A plan's workspace holds only the cells that the plan has built; every other cell is read from the
tables under it. All reading of a model's rows goes through `rows_of`, so that a batch, its audits
and its readers see the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import quoted
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.files.cell_files import files_at
from backfill_assets.warehouse.files.cells import cell_text, cell_type, cells_predicate
from backfill_assets.warehouse.files.stored_columns import stored_columns
from backfill_assets.warehouse.files.tables import ABSENT, Table, snapshot_df

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.warehouse.files.cell_files import NamedFile


@dataclass(frozen=True, slots=True)
class Part:
    """One Delta table at one version, and the rows that come from it.

    Attributes:
        path: of the table.
        delta_version: its pin.
        where: Spark SQL over `_cell` that keeps those rows.
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


def parts_of(cadence: Cadence, table: Table, cells: IntervalSet | None = None) -> tuple[Part, ...]:
    """Give the part that each table reads, the upper first; tables without a part are left out.

    Args:
        cadence: of the model.
        table: what is read.
        cells: only these; None for every cell.
    """
    return tuple(
        Part(layer.path, layer.delta_version, where)
        for layer, above in answering(table)
        if (where := _predicate(cadence, layer.cells, above, cells)) is not None
    )


def answering(table: Table) -> Iterator[tuple[Table, IntervalSet]]:
    """Give each table that answers for cells, the upper first, with the cells that tables above it answer for."""
    above = IntervalSet.empty()
    for layer in _flat(table):
        if layer.delta_version > ABSENT:
            yield layer, above
        if layer.cells is None:
            break
        above |= layer.cells


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
    parts = parts_of(model.cadence, table, cells)
    frames = [_rows(spark, model, part) for part in parts]
    if not frames:
        columns = {**stored_columns(model), CELL_COLUMN: cell_type(model.cadence)}
        return spark.createDataFrame([], ", ".join(f"{quoted(c)} {t}" for c, t in columns.items()))
    return reduce(lambda frame, other: frame.unionByName(other), frames)


def files_read(model: Model, table: Table, cells: IntervalSet) -> tuple[FilesRead, ...]:
    """Name the files that some cells are read from, by the table that they lie in.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    by_table: list[FilesRead] = []
    for layer, inside in cells_by_table(table, cells):
        asked = tuple(cell_text(model.cadence, cell) for cell in model.cadence.cells(inside))
        files = files_at(layer.path, layer.delta_version, asked)
        by_table.append(FilesRead(layer.path, asked, files))
    return tuple(by_table)


def cells_by_table(table: Table, cells: IntervalSet) -> Iterator[tuple[Table, IntervalSet]]:
    """Give the cells that are read from each of the tables; a table without any is left out."""
    above = IntervalSet.empty()
    for layer in _flat(table):
        inside = (cells if layer.cells is None else layer.cells & cells) - above
        above |= inside
        if inside and layer.delta_version > ABSENT:
            yield layer, inside


def _flat(table: Table) -> Iterator[Table]:
    yield table
    for layer in table.under:
        yield from _flat(layer)


def _predicate(
    cadence: Cadence, own: IntervalSet | None, above: IntervalSet, wanted: IntervalSet | None
) -> str | None:
    """Write the condition on the cells that a table answers for; None for none."""
    if own is not None or wanted is not None:
        inside = wanted if own is None else own if wanted is None else own & wanted
        left = IntervalSet.empty() if inside is None else inside - above
        return cells_predicate(cadence, left) if left else None
    if not above:
        return "TRUE"
    return f"NOT ({cells_predicate(cadence, above)})"


def _rows(spark: SparkSession, model: Model, part: Part) -> DataFrame:
    rows = snapshot_df(spark, part.path, part.delta_version).where(part.where)
    there = set(rows.columns)
    return rows.selectExpr(
        *(
            quoted(name) if name in there else f"CAST(NULL AS {dtype}) AS {quoted(name)}"
            for name, dtype in stored_columns(model).items()
        ),
        CELL_COLUMN,
    )
