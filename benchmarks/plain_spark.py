"""A Spark as people without us start it: with the Delta, memory and partitions of ours, and Java's own options."""

from __future__ import annotations

from backfill_assets.settings import read_settings
from backfill_assets.warehouse.spark.session import spark_config, spark_settings

# Of our settings, those that say where Spark runs, with how much, and that Delta is there.
_SHARED = (
    "spark.jars",
    "spark.driver.memory",
    "spark.ui.enabled",
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
    "spark.databricks.delta.snapshotPartitions",
)


def plain_spark(warehouse: str) -> dict[str, str]:
    """Give its settings; tables without a path lie in the warehouse."""
    settings = spark_settings(read_settings())
    ours = spark_config(settings)
    return {
        **{name: ours[name] for name in _SHARED},
        "spark.master": settings.master,
        "spark.sql.warehouse.dir": warehouse,
    }
