"""One small Spark session for all tests that need one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.warehouse.session import SparkSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKOUT = Path(__file__).parent.parent


def jars_dir() -> Path:
    """The folder with Delta's jars: BACKFILL_JARS_DIR, or the checkout's own."""
    return Path(os.environ.get("BACKFILL_JARS_DIR") or _CHECKOUT / ".spark-jars")


def start_test_session(warehouse: Path) -> SparkSession:
    """Start it; the first test that needs it waits some seconds."""
    settings = SparkSettings(
        jars_dir=jars_dir(),
        warehouse=str(warehouse),
        master="local[2]",
        driver_memory="2g",
        shuffle_partitions=2,
        # Code this small is run too seldom to be worth the best compiler: a third less CPU. Its
        # cache would be full after some minutes, and nothing compiled any more.
        extra={
            "spark.log.level": "ERROR",
            "spark.driver.extraJavaOptions": (
                "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
            ),
        },
    )
    return start_session(settings)
