"""Reading: a model's published rows at a pin, without what only we need to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.tables import snapshot_df

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_pinned(spark: SparkSession, path: str, delta_version: int) -> DataFrame:
    """Read a table at a pin, `_cell` left out.

    Raises:
        PinGoneError: that version can't be read any more.
        CorruptTableError: the log is damaged.
    """
    return snapshot_df(spark, path, delta_version).drop(CELL_COLUMN)
