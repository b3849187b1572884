"""Audits in PySpark, as an author writes them beside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.warehouse.row_limits import LONGEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def long_names(rows: DataFrame) -> DataFrame:
    return rows.where(f"length(shop) > {LONGEST}")


def totals_below_zero(rows: DataFrame) -> DataFrame:
    return rows.groupBy("shop").agg({"amount": "sum"}).where("`sum(amount)` < 0")


def no_frame(rows: DataFrame) -> int:
    return rows.count()
