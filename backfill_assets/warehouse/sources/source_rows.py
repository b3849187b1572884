"""Find the cells of a source that hold any row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.warehouse.files.cells import cell_expression, cell_of_number, number_expression
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.rows.inputs import Input, read_cells
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backfill_assets.models.source import Source


def cells_with_rows(
    spark: SparkSession, path: str, source: Source, cells: IntervalSet
) -> IntervalSet:
    """Give those of these cells for which a source's table holds at least one row now.

    Raises:
        MissingTableError: there is no table.
        SchemaDriftError: the table differs from its declaration.
    """
    rows = read_cells(spark, Input(source, table_now(path), cells))
    time = source.time_column
    with explaining_errors(path):
        if time is None:
            return IntervalSet.empty() if rows.isEmpty() else cells
        dtype = rows.schema[time].dataType.simpleString()
        number = number_expression(source.cadence, cell_expression(time, dtype, source.cadence))
        numbered = rows.selectExpr(f"{number} AS cell").distinct().collect()
    return IntervalSet.of(cell_of_number(source.cadence, row["cell"]) for row in numbered)
