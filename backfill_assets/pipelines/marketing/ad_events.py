"""Make up ad events: the same for the same seed, at any size, without shuffling a row.

Every value of an event follows from hashes of its number, so any executor makes the same row.
Numbers run through time, so each task writes a few days and a day is one file, seldom two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backfill_assets.pipelines.marketing.sources import FIRST_DAY, ad_events

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CAMPAIGNS = 60
CHANNELS = ("search", "social", "display", "video", "email")
ATTRIBUTIONS = ("last_click", "assisted", "view_through")
DAYS = 540
CLICKS_FROM, CONVERSIONS_FROM = 840, 970
"""Of a thousand events, the first 840 are impressions, the last 30 conversions."""

REPORTED_LATER_FROM, REPORTED_LATE_FROM = 80, 95
"""Of a hundred events, the first 80 are reported within the hour, the last 5 within three days."""

TASKS = 8

_HOUR, _DAY = 3_600, 86_400


def generate_events(
    spark: SparkSession, *, rows: int, seed: int, days: int = DAYS, start: str = FIRST_DAY
) -> DataFrame:
    """Make `rows` ad events over `days` days.

    Args:
        spark: a session whose zone is UTC.
        rows: how many; the last days have half as many again as the first.
        seed: another seed, another history.
        days: how many days the events happen in.
        start: the first of them, an ISO date.

    Returns:
        The columns of the source `marketing.ad_events`, in order of the day.
    """
    chance = _Chance(seed)
    numbered = spark.range(0, rows, 1, TASKS).withColumnRenamed("id", "event_id")
    happened = numbered.select(
        "event_id",
        _day(rows, days).alias("day"),
        (chance.below(CAMPAIGNS, 1) + 1).alias("campaign_id"),
        chance.one_of(CHANNELS, 2).alias("channel"),
        _event_type(chance.below(1_000, 3)).alias("event_type"),
    ).withColumn(
        "event_time",
        F.timestamp_seconds(
            F.unix_date(F.lit(start).cast("date")).cast("bigint") * _DAY
            + F.col("day") * _DAY
            + chance.below(_DAY, 4)
        ),
    )
    is_conversion = F.col("event_type") == "conversion"
    value = ((chance.below(800, 5) + 200) * F.expr("0.01BD")).cast("decimal(18,2)")
    return (
        happened.withColumn("event_date", F.to_date("event_time"))
        .withColumn("reported_at", _reported_at(chance))
        .withColumn("cost", _cost(chance))
        .withColumn("conversion_value", F.when(is_conversion, value))
        .withColumn("attribution", F.when(is_conversion, chance.one_of(ATTRIBUTIONS, 6)))
        .select(*(column.name for column in ad_events.schema))
    )


@dataclass(frozen=True, slots=True)
class _Chance:
    """Random draws that depend only on the event's number, the seed and the place of the draw."""

    seed: int

    def below(self, bound: int, place: int) -> Column:
        """A whole number in [0, bound)."""
        drawn = F.xxhash64(F.col("event_id"), F.lit(self.seed), F.lit(place))
        return F.pmod(drawn, F.lit(bound)).cast("int")

    def one_of(self, values: tuple[str, ...], place: int) -> Column:
        """One of the values, each as likely."""
        listed = F.array(*(F.lit(value) for value in values))
        return F.element_at(listed, self.below(len(values), place) + 1)


def _day(rows: int, days: int) -> Column:
    """The day of an event by its number: density grows linearly from 0.8 to 1.2."""
    share = (F.col("event_id") + 0.5) / F.lit(float(rows))
    return F.floor((F.sqrt(0.64 + 0.8 * share) - 0.8) / 0.4 * days).cast("bigint")


def _event_type(per_mille: Column) -> Column:
    return (
        F.when(per_mille < CLICKS_FROM, "impression")
        .when(per_mille < CONVERSIONS_FROM, "click")
        .otherwise("conversion")
    )


def _reported_at(chance: _Chance) -> Column:
    percent = chance.below(100, 7)
    delay = (
        F.when(percent < REPORTED_LATER_FROM, chance.below(_HOUR, 8))
        .when(percent < REPORTED_LATE_FROM, chance.below(_DAY, 8))
        .otherwise(chance.below(3 * _DAY, 8))
    )
    return F.timestamp_seconds(F.unix_timestamp("event_time") + delay)


def _cost(chance: _Chance) -> Column:
    """Dollars: a click by its campaign's bid, an impression a tenth of a cent and more."""
    noise = chance.below(50, 9)
    click = (F.col("campaign_id") % 7 * 10 + 20 + noise) * F.expr("0.0100BD")
    impression = (noise + 10) * F.expr("0.0001BD")
    return (
        F.when(F.col("event_type") == "click", click)
        .when(F.col("event_type") == "impression", impression)
        .otherwise(F.expr("0BD"))
        .cast("decimal(18,4)")
    )
