"""Land the commerce sources: jafgen's csv files as typed tables, with columns that a real feed has.

Added are: the day of an order; the order's time on its items, which have none of their own, as a
change feed carries it; when a row was last updated (within two hours of the order) and when it
arrived (within six hours of that), both by its id alone; and the history of supply prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backfill_assets.pipelines.commerce import sources
from backfill_assets.pipelines.commerce.jaffle_shop import SEED, simulated_shop
from backfill_assets.pipelines.commerce.supply_prices import price_history
from backfill_assets.pipelines.landed_table import LandedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from backfill_assets.models.source import Source

    Shop = Callable[[], Mapping[str, pa.Table]]

_YEAR = f"one year of jafgen with seed {SEED}"


def landings(shop: Shop = simulated_shop, label: str = _YEAR) -> tuple[LandedTable, ...]:
    """Give the landing of every commerce source.

    Args:
        shop: gives the csv files; called only when a source has to be landed.
        label: names the output of `shop`.
    """

    def whole(source: Source, file: str) -> LandedTable:
        return LandedTable(
            source=source, label=label, rows=lambda spark: _typed(_text(spark, shop, file), source)
        )

    def daily(source: Source, rows: Callable[[SparkSession, Shop], DataFrame]) -> LandedTable:
        return LandedTable(
            source=source,
            label=label,
            rows=lambda spark: _typed(rows(spark, shop), source).repartition("order_date"),
            partition_by=("order_date",),
        )

    return (
        daily(sources.raw_orders, _orders),
        daily(sources.raw_items, _items),
        LandedTable(
            source=sources.raw_supply_prices,
            label=label,
            rows=lambda spark: _supply_prices(spark, shop),
        ),
        whole(sources.raw_products, "products"),
        whole(sources.raw_stores, "stores"),
        whole(sources.raw_customers, "customers"),
        whole(sources.raw_supplies, "supplies"),
    )


def _orders(spark: SparkSession, shop: Shop) -> DataFrame:
    return (
        _text(spark, shop, "orders")
        .withColumn("ordered_at", _utc("ordered_at"))
        .withColumn("order_date", F.to_date("ordered_at"))
        .withColumn("updated_at", _later("ordered_at", hours=2))
        .withColumn("ingested_at", _later("updated_at", hours=6))
    )


def _items(spark: SparkSession, shop: Shop) -> DataFrame:
    ordered = _orders(spark, shop).select(
        F.col("id").alias("order_id"), "ordered_at", "order_date", "updated_at"
    )
    items = _text(spark, shop, "items").join(ordered, "order_id")
    return items.withColumn("ingested_at", _later("updated_at", hours=6))


def _supply_prices(spark: SparkSession, shop: Shop) -> DataFrame:
    supplies = shop()["supplies"].to_pylist()
    history = price_history((row["id"], row["sku"], int(row["cost"])) for row in supplies)
    schema = ", ".join(
        f"{column.name} {column.dtype}" for column in sources.raw_supply_prices.schema
    )
    return spark.createDataFrame(list(history), schema).coalesce(1)


def _text(spark: SparkSession, shop: Shop, file: str) -> DataFrame:
    return spark.createDataFrame(shop()[file])


def _typed(rows: DataFrame, source: Source) -> DataFrame:
    """Give the rows the source's columns and types."""
    return rows.select(
        *(F.col(column.name).cast(column.dtype).alias(column.name) for column in source.schema)
    )


def _utc(column: str) -> Column:
    return F.concat(F.col(column), F.lit("Z")).cast("timestamp")


def _later(column: str, *, hours: int) -> Column:
    """Up to so many hours later, in whole seconds, by the row's id alone."""
    seconds = F.pmod(F.xxhash64(F.col("id"), F.lit(column)), F.lit(hours * 3_600))
    return F.timestamp_seconds(F.unix_timestamp(column) + seconds)
