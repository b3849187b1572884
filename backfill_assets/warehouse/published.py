"""Published rows: what a table holds in some cells, at a pin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.cells import cells_predicate
from backfill_assets.warehouse.conform import stored_columns
from backfill_assets.warehouse.tables import snapshot_df

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.tables import Table


def published_rows(
    spark: SparkSession, model: Model, cells: Iterable[Interval], table: Table
) -> DataFrame:
    """Read the rows of some cells with `_cell`, as an audit wants them."""
    rows = snapshot_df(spark, table.path, table.delta_version)
    columns = [f"`{name}`" for name in (*stored_columns(model), CELL_COLUMN)]
    return rows.where(cells_predicate(model.cadence, IntervalSet.of(cells))).select(*columns)
