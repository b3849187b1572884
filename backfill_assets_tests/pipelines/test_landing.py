from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_assets.pipelines.landed_table import ForeignTableError, LandedTable, table_path
from backfill_assets.pipelines.marketing.ad_events import generate_events
from backfill_assets.pipelines.marketing.sources import ad_events

pytestmark = pytest.mark.spark


def landing_of(rows: int) -> LandedTable:
    return LandedTable(
        source=ad_events,
        label=f"{rows} rows",
        rows=partial(generate_events, rows=rows, seed=1, days=3),
        partition_by=("event_date",),
    )


def events_in(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("delta").load(table_path(ad_events, folder))


def versions(spark: SparkSession, folder: Path) -> int:
    path = table_path(ad_events, folder)
    return spark.sql(f"DESCRIBE HISTORY delta.`{path}`").count()


@pytest.mark.connect
def test_landing_twice_writes_once(spark: SparkSession, tmp_path: Path):
    land = landing_of(60)
    assert not land.is_landed(tmp_path)
    assert land(spark, tmp_path)
    assert land.is_landed(tmp_path)
    assert not land(spark, tmp_path)
    assert versions(spark, tmp_path) == 1


def test_landed_is_landed_whatever_is_appended_later(spark: SparkSession, tmp_path: Path):
    land = landing_of(60)
    land(spark, tmp_path)
    late = events_in(spark, tmp_path).limit(1)
    late.write.format("delta").mode("append").save(table_path(ad_events, tmp_path))
    assert not land(spark, tmp_path)
    assert events_in(spark, tmp_path).count() == 61


def test_landing_at_another_size_replaces_the_table(spark: SparkSession, tmp_path: Path):
    landing_of(60)(spark, tmp_path)
    assert landing_of(70)(spark, tmp_path)
    assert events_in(spark, tmp_path).count() == 70


def test_a_table_that_was_not_landed_here_is_never_overwritten(spark: SparkSession, tmp_path: Path):
    path = table_path(ad_events, tmp_path)
    spark.range(3).write.format("delta").save(path)
    with pytest.raises(ForeignTableError, match="not written by a landing"):
        landing_of(60)(spark, tmp_path)
    assert spark.read.format("delta").load(path).count() == 3


def test_landed_tables_keep_their_log(spark: SparkSession, tmp_path: Path):
    landing_of(60)(spark, tmp_path)
    path = table_path(ad_events, tmp_path)
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
    assert detail["properties"]["delta.enableExpiredLogCleanup"] == "false"
    assert detail["partitionColumns"] == ["event_date"]
