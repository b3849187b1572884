"""Compute the content of a source's cells from its rows, for cells that the log can't decide."""

from __future__ import annotations

import hashlib
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.models.column import quoted
from backfill_assets.models.content import once_rounded
from backfill_assets.snapshots.observation import SourceCell
from backfill_assets.warehouse.files.cells import (
    cell_expression,
    cell_of_number,
    number_expression,
    time_predicate,
)
from backfill_assets.warehouse.files.file_spans import CellsRead
from backfill_assets.warehouse.files.tables import snapshot_df
from backfill_assets.warehouse.rows.checksum import joined, key_hash, sums
from backfill_assets.warehouse.sources.source_changes import is_cut
from backfill_assets.warehouse.sources.source_columns import changed_columns
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.source import Source


def rows_by_cell(
    spark: SparkSession, path: str, source: Source, delta_version: int, cells: IntervalSet
) -> dict[Interval, SourceCell]:
    """Count the rows of these cells; a cell without any is left out.

    Raises:
        PinGoneError: that delta_version can't be read any more.
        CorruptTableError: its files, or the log, are damaged or gone.
        DeclarationError: the event time can't say which cell a row belongs to.
    """
    rows = _rows(spark, path, source, delta_version, cells)
    with explaining_errors(path):
        counted = rows.groupBy("_cell").count().collect()
    return {
        cell: SourceCell(cell, row["count"])
        for row in counted
        for cell in (_cell(source, row["_cell"]),)
    }


def content_by_cell(
    spark: SparkSession, path: str, source: Source, versions: tuple[int, ...], cells: IntervalSet
) -> tuple[dict[Interval, SourceCell], ...]:
    """Compute the content of these cells at each of some delta_versions, in one aggregation.

    A declared column that did not exist yet counts as NULL, the value that older rows have now.

    Raises:
        PinGoneError: one of them can't be read any more.
        CorruptTableError: files, or the log, are damaged or gone.
        DeclarationError: the event time can't say which cell a row belongs to.
    """
    everything = frozenset(column.name for column in source.schema)
    frames = [_rows(spark, path, source, at, cells) for at in versions]
    contents: tuple[dict[Interval, SourceCell], ...] = tuple({} for _ in versions)
    declared = _declared(source)
    for cell, by_version in _summed(frames, source, path, [everything]).items():
        for at, (rows, total) in by_version.items():
            contents[at][cell] = SourceCell(cell, rows, f"{declared}:{rows}:{total}")
    return contents


def _rows(
    spark: SparkSession, path: str, source: Source, delta_version: int, cells: IntervalSet
) -> DataFrame:
    """Read the declared columns of the cells' rows, with the number of each one's cell."""
    read = CellsRead(str(source.time_column), source.cadence, cells) if is_cut(source) else None
    frame = snapshot_df(spark, path, delta_version, read)
    names = set(frame.columns)
    declared = [
        quoted(column.name)
        if column.name in names
        else f"CAST(NULL AS {column.dtype}) AS {quoted(column.name)}"
        for column in source.schema
    ]
    if not is_cut(source):
        return frame.selectExpr(*declared, "CAST(0 AS BIGINT) AS _cell")
    time, cadence = str(source.time_column), source.cadence
    dtype = dict(frame.dtypes).get(time, "missing")
    number = number_expression(cadence, cell_expression(time, dtype, cadence))
    inside = frame.where(time_predicate(time, dtype, cadence, cells))
    return inside.selectExpr(*declared, f"{number} AS _cell")


def columns_by_cell(
    spark: SparkSession, path: str, source: Source, versions: tuple[int, int], cells: IntervalSet
) -> dict[Interval, frozenset[str]]:
    """Name the columns that changed in cells that hold as many other rows at a later delta_version.

    A cell that is left out counts as changed in every column; see `source_columns`.

    Raises:
        PinGoneError: one of them can't be read any more.
        CorruptTableError: files, or the log, are damaged or gone.
    """

    def same(
        requested_cells: IntervalSet, groups: Sequence[frozenset[str]]
    ) -> dict[Interval, tuple[bool, ...]]:
        frames = [_rows(spark, path, source, at, requested_cells) for at in versions]
        return _same(frames, source, path, groups)

    return changed_columns(source, cells, same)


def _same(
    frames: list[DataFrame], source: Source, path: str, groups: Sequence[frozenset[str]]
) -> dict[Interval, tuple[bool, ...]]:
    """Decide, by cell, for each group of columns whether two frames hold the same rows of them."""
    return {
        cell: tuple(before == after for before, after in zip(both[0][1:], both[1][1:], strict=True))
        for cell, both in _summed(frames, source, path, groups).items()
        if len(both) == len(frames) and both[0][0] == both[1][0]
    }


def _summed(
    frames: list[DataFrame], source: Source, path: str, groups: Sequence[frozenset[str]]
) -> dict[Interval, dict[int, tuple[int, ...]]]:
    """Give, by cell and place of the frame, the number of rows and the sum of hashes of each group of columns."""
    parts = [
        _sums(frame, source, groups).withColumn("at", F.lit(number))
        for number, frame in enumerate(frames)
    ]
    with explaining_errors(path):
        collected = reduce(lambda frame, other: frame.unionByName(other), parts).collect()
    by_cell: dict[Interval, dict[int, tuple[int, ...]]] = {}
    for row in collected:
        totals = (joined(int(row[f"high{at}"]), int(row[f"low{at}"])) for at in range(len(groups)))
        by_cell.setdefault(_cell(source, row["_cell"]), {})[row["at"]] = (row["rows"], *totals)
    return by_cell


def _sums(frame: DataFrame, source: Source, groups: Sequence[frozenset[str]]) -> DataFrame:
    """Add up the hashes of each group of columns, by cell."""
    names = [column.name for column in source.schema]
    hashes = [
        F.expr(key_hash([name for name in names if name in group], frame.schema)).alias(f"_{at}")
        for at, group in enumerate(groups)
    ]
    totals = [
        F.expr(part).alias(f"{name}{at}")
        for at in range(len(groups))
        for name, part in zip(("high", "low"), sums(f"_{at}"), strict=True)
    ]
    hashed = frame.select("_cell", *hashes)
    return hashed.groupBy("_cell").agg(F.count(F.lit(1)).alias("rows"), *totals)


def _cell(source: Source, number: int) -> Interval:
    return cell_of_number(source.cadence, number) if is_cut(source) else WHOLE_CELL


def _declared(source: Source) -> str:
    """Describe the sums: those over other columns, or over rounded values, can't be compared."""
    types = {column.name: column.dtype for column in source.schema}
    text = "|".join(f"{name} {dtype}" for name, dtype in types.items())
    if once_rounded(types, ()):
        text += "|exact"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
