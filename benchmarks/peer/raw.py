"""The ad events that both read: `python -m benchmarks.peer.raw FOLDER EVENTS DAYS` lands them once."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as Spark's users know it

from backfill_assets.pipelines.landed_table import LandedTable
from backfill_assets.settings import read_settings
from backfill_assets.warehouse.spark.session import spark_settings, start_session
from benchmarks.peer.catalog import raw
from benchmarks.peer.subject import SOURCE_COLUMNS, Size
from benchmarks.process import measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PIECES = 8
_CHANNELS = "array('search', 'social', 'display', 'email', 'video')"
_VALUES = {
    "event_ts": "timestampadd(SECOND, pmod(hash(id), 86400), cast(event_date AS timestamp))",
    "campaign_id": "cast(pmod(hash(id, 1), 200) AS int)",
    "channel": f"element_at({_CHANNELS}, 1 + pmod(hash(id, 2), 5))",
    "event_type": "CASE WHEN pmod(hash(id, 3), 100) < 88 THEN 'impression'"
    " WHEN pmod(hash(id, 3), 100) < 98 THEN 'click' ELSE 'conversion' END",
    "cost": "IF(event_type = 'click', pmod(hash(id, 4), 300) / 100D, 0.001D)",
    "revenue": "IF(event_type = 'conversion', pmod(hash(id, 5), 20000) / 100D, 0D)",
}


def land(folder: Path, size: Size) -> Path:
    """Make the events, unless they are there; give the folder that has `sources` in it."""
    at = (folder / f"raw-{size.events}-{size.days}").resolve()
    if not _table(size).is_landed(at):
        command = [sys.executable, "-m", "benchmarks.peer.raw", str(at)]
        measured([*command, str(size.events), str(size.days)], {})
    return at


def main(folder: str, events: str, days: str) -> None:
    """Land the events with a Spark of its own."""
    settings = spark_settings(read_settings())
    spark = start_session(replace(settings, warehouse=f"{folder}/spark-warehouse"))
    _table(Size(int(events), int(days)))(spark, Path(folder))
    spark.stop()


def _table(size: Size) -> LandedTable:
    return LandedTable(
        source=raw,
        label=str(size),
        rows=partial(_events, size=size),
        partition_by=("event_date",),
    )


def _events(spark: SparkSession, size: Size) -> DataFrame:
    day = f"cast(id * {size.days} / {size.events} AS int)"
    rows = spark.range(0, size.events, 1, _PIECES).withColumn(
        "event_date", F.expr(f"date_add(DATE'{size.first_day}', {day})")
    )
    for name, value in _VALUES.items():
        rows = rows.withColumn(name, F.expr(value))
    columns = [name for name, _ in SOURCE_COLUMNS]
    return (
        rows.withColumnRenamed("id", "event_id").select(columns).repartition(_PIECES, "event_date")
    )


if __name__ == "__main__":
    main(*sys.argv[1:4])
