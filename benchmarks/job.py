"""The job without us: one Spark program that computes campaign performance over all days.

    python -m benchmarks.job land FOLDER EVENTS
    python -m benchmarks.job noop|delta|plain|bare SOURCE TARGET

`noop` writes nowhere; `delta` writes the same table as a backfill does: the model's columns and
`_cell`, partitioned by `_cell`, one file a day; `plain` does so in a Spark with Java's own options, as
those have it who work without us; `bare` only starts Spark. Each ends with one line of JSON: the
seconds that the session took to start and that the work took.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.models.sql.query import SqlQuery, parameters_of
from backfill_assets.pipelines.marketing.landing import landings
from backfill_assets.pipelines.marketing.models import campaign_performance
from backfill_assets.settings import read_settings
from backfill_assets.warehouse.spark.session import spark_settings, start_session
from benchmarks.plain_spark import plain_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def main(what: str, first: str, second: str) -> None:
    """Do one thing and print how long it took."""
    began = time.monotonic()
    spark = _plain(second) if what == "plain" else _session(second if what == "delta" else first)
    spark.range(1).count()  # the session is usable
    ready = time.monotonic()
    match what:
        case "land":
            (table,) = landings(rows=int(second))
            table(spark, first)
        case "noop":
            _computed(spark, first).write.format("noop").mode("overwrite").save()
        case "delta" | "plain":
            _write(_computed(spark, first), second)
        case _:
            pass
    done = time.monotonic()
    spark.stop()
    sys.stdout.write(json.dumps({"spark_start": ready - began, "work": done - ready}) + "\n")


def _session(folder: str) -> SparkSession:
    settings = spark_settings(read_settings())
    return start_session(replace(settings, warehouse=f"{folder}/spark-warehouse"))


def _plain(folder: str) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder
    for name, value in plain_spark(f"{folder}/spark-warehouse").items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _computed(spark: SparkSession, source: str) -> DataFrame:
    model = campaign_performance
    if not isinstance(model.logic, SqlQuery):
        message = "campaign_performance is expected to be a SQL model"
        raise TypeError(message)
    spark.read.format("delta").load(source).createOrReplaceTempView("ad_events")
    start, end = model.cadence.start, model.cadence.end
    if start is None or end is None:
        message = "campaign_performance is expected to have a first and a last day"
        raise TypeError(message)
    bound = parameters_of(start, end, start, end)
    return spark.sql(model.logic.bind(bound, {"marketing.ad_events": "ad_events"}))


def _write(computed: DataFrame, path: str) -> None:
    rows = computed.withColumn(CELL_COLUMN, computed["ds"]).repartition(CELL_COLUMN)
    rows.write.format("delta").partitionBy(CELL_COLUMN).save(path)


if __name__ == "__main__":
    main(*sys.argv[1:4])
