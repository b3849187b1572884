"""Read a model's published rows at their pins, without the columns that only this project needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.files.layers import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table


def read_pinned(spark: SparkSession, model: Model, table: Table) -> DataFrame:
    """Read a model at its pins, layers included, `_cell` left out.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    return rows_of(spark, model, table).drop(CELL_COLUMN)


def published_rows(
    spark: SparkSession, model: Model, cells: Iterable[Interval], table: Table
) -> DataFrame:
    """Read the rows of some cells with `_cell`, as an audit wants them."""
    return rows_of(spark, model, table, IntervalSet.of(cells))
