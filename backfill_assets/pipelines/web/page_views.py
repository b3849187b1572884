"""Make up page views: users who come in bursts, at any hour, and one monitor without a pause.

They are the same for the same seed. A burst is ten views at a pace of its own, from seconds to more than
half an hour apart: some are one session, some are several, and some cross midnight. One view in 64
is of a monitor that calls a page evenly, day and night. One view in 50 is delivered twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backfill_assets.pipelines.web.sources import FIRST_DAY, raw_events

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DAYS = 45
USERS = 2_000
BURST = 10
PACES = (15, 60, 240, 900, 2_000)
"""Seconds between the views of a burst."""

PAGES = ("/", "/menu", "/order", "/stores", "/basket", "/account", "/jobs")

_HOUR, _DAY = 3_600, 86_400


def generate_page_views(
    spark: SparkSession, *, rows: int, seed: int, days: int = DAYS, start: str = FIRST_DAY
) -> DataFrame:
    """Make `rows` page views, and second deliveries of some.

    Args:
        spark: a session whose zone is UTC.
        rows: how many views.
        seed: another seed, another history.
        days: how many days they happen in.
        start: the first of them, an ISO date.

    Returns:
        The columns of the source `web.raw_events`.
    """

    def below(bound: int, place: int, what: str = "number") -> Column:
        """A whole number in [0, bound), the same for the same view or burst."""
        drawn = F.xxhash64(F.col(what), F.lit(seed), F.lit(place))
        return F.pmod(drawn, F.lit(bound)).cast("int")

    def one_of(values: tuple[str | int, ...], place: int, what: str = "number") -> Column:
        listed = F.array(*(F.lit(value) for value in values))
        return F.element_at(listed, below(len(values), place, what) + 1)

    span = days * _DAY
    step = F.col("number") % BURST * one_of(PACES, 1, "burst") + below(15, 2)
    in_burst = F.pmod(below(span, 3, "burst") + step, F.lit(span))
    evenly = F.floor(F.col("number") * F.lit(span) / F.lit(rows))
    midnight = F.unix_date(F.lit(start).cast("date")).cast("bigint") * _DAY
    is_monitor = F.col("number") % 64 == 0
    user = F.format_string("u%04d", below(USERS, 4, "burst"))
    twice = F.when(below(50, 5) == 0, F.sequence(F.lit(0), F.lit(1))).otherwise(F.array(F.lit(0)))
    return (
        spark.range(rows)
        .withColumnRenamed("id", "number")
        .withColumn("burst", F.floor(F.col("number") / BURST))
        .withColumn("second", midnight + F.when(is_monitor, evenly).otherwise(in_burst))
        .withColumn("delivery", F.explode(twice))
        .select(
            F.format_string("e%09d", "number").alias("event_id"),
            F.timestamp_seconds("second").alias("event_time"),
            F.to_date(F.timestamp_seconds("second")).alias("event_date"),
            F.when(is_monitor, "monitor").otherwise(user).alias("user_id"),
            one_of(PAGES, 6).alias("page"),
            F.timestamp_seconds(
                F.col("second") + below(300, 7) + F.col("delivery") * 2 * _HOUR
            ).alias("ingested_at"),
        )
        .select(*(column.name for column in raw_events.schema))
    )
