"""Sessions: a user's page views without thirty minutes of silence between two of them.

A session is over when the silence has lasted; it belongs to the day in which that happened, so it
is known at the end of that day: no later view can lengthen it. Views that go on and on without a
silence are cut at the second midnight after they began, and at each midnight after that; such a
session belongs to the day that this midnight ends. So a session is shorter than two days, and
whether a midnight cuts shows in the day and half an hour before the day it ends: a day's sessions
need `LOOKBACK_HOURS` of views before it, no more. Days, like all times here, are UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window, functions as F

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from backfill_assets.intervals.interval import Interval

LOOKBACK_HOURS = 25
SILENCE = "INTERVAL 30 MINUTES"


def sessions(inputs: Mapping[str, DataFrame], interval: Interval) -> DataFrame:
    """Find the sessions that were over within the interval's days."""
    found = (
        _with_chain(inputs["web.events"])
        .withColumn("day", F.to_date("event_time"))
        .withColumn("cut_day", F.expr("CASE WHEN chain_day < DATE_SUB(day, 1) THEN day END"))
        .groupBy("user_id", "chain_day", "chain", "cut_day")
        .agg(
            F.min("event_time").alias("started_at"),
            F.max("event_time").alias("ended_at"),
            F.count("*").alias("page_views"),
            F.count_distinct("page").alias("pages"),
        )
        .withColumn(
            "last_midnight", F.expr("COALESCE(DATE_ADD(cut_day, 1), DATE_ADD(chain_day, 2))")
        )
        .withColumn(
            "closed_at", F.expr(f"LEAST(ended_at + {SILENCE}, CAST(last_midnight AS TIMESTAMP))")
        )
        .withColumn("session_date", F.expr("TO_DATE(closed_at - INTERVAL 1 MICROSECOND)"))
        .withColumn("session_id", F.expr("CONCAT(user_id, '-', UNIX_MICROS(started_at))"))
    )
    first, end = interval.start.date(), interval.end.date()
    return found.where((F.col("session_date") >= first) & (F.col("session_date") < end)).select(
        "session_id",
        "user_id",
        "session_date",
        "started_at",
        "ended_at",
        "closed_at",
        "page_views",
        "pages",
    )


def _with_chain(events: DataFrame) -> DataFrame:
    """Number each user's chains of views without a silence, and say on which day each began."""
    in_order = Window.partitionBy("user_id").orderBy("event_time", "event_id")
    before = F.lag("event_time").over(in_order)
    begins = before.isNull() | (F.col("event_time") >= before + F.expr(SILENCE))
    chain = Window.partitionBy("user_id", "chain")
    return events.withColumn(
        "chain", F.sum(F.when(begins, 1).otherwise(0)).over(in_order)
    ).withColumn("chain_day", F.to_date(F.min("event_time").over(chain)))
