from __future__ import annotations

import pytest
from pyspark.sql import SparkSession, functions as F

from backfill_assets.pipelines.marketing import models, sources
from backfill_assets.pipelines.marketing.ad_events import generate_events
from backfill_assets_tests.pipelines.computing import computed, frame, records

pytestmark = pytest.mark.spark


def event(kind: str, cost: str, day: str = "2024-01-01", campaign: int = 1) -> dict[str, str]:
    known = {"campaign_id": str(campaign), "channel": "search", "event_date": day}
    return {**known, "event_type": kind, "cost": cost}


def performance(day: str, cost: str, campaign: int = 1, conversions: int = 1) -> dict[str, str]:
    known = {"ds": day, "channel": "search", "campaign_id": str(campaign), "cost": cost}
    return {**known, "impressions": "10", "clicks": "2", "conversions": str(conversions)}


def test_performance_counts_and_divides_per_day_channel_and_campaign(spark: SparkSession):
    raw = frame(
        spark,
        sources.ad_events,
        *[event("impression", "0.0010")] * 4,
        event("click", "0.5000"),
        event("conversion", "0"),
        event("impression", "0.0020", campaign=2),
        event("impression", "9", day="2024-01-02"),
    )
    inputs = {"marketing.ad_events": raw}
    found = computed(spark, models.campaign_performance, inputs, "2024-01-01", "2024-01-02")
    assert records(found) == [
        ("2024-01-01", "search", "1", "4", "1", "0.25", "0.5040", "1", "0.5040", "0.5040"),
        ("2024-01-01", "search", "2", "1", "0", "0.0", None, "0", "0.0020", None),
    ]


def test_a_month_is_compared_with_the_calendar_month_before_it_and_the_first_with_none(
    spark: SparkSession,
):
    days = frame(
        spark,
        models.campaign_performance,
        performance("2024-01-31", "10"),
        performance("2024-02-01", "6"),
        performance("2024-02-29", "9"),
        performance("2024-04-01", "1"),
    )
    inputs = {"marketing.campaign_performance": days}
    trends = models.campaign_trends_monthly
    found = computed(spark, trends, inputs, "2024-01-01", "2024-05-01")
    columns = ("month_start", "cost", "previous_conversions", "previous_cost", "cost_change")
    assert records(found, *columns) == [
        ("2024-01-01", "10.0000", None, None, None),
        ("2024-02-01", "15.0000", "1", "10.0000", "0.500000"),
        ("2024-04-01", "1.0000", None, None, None),
    ]
    alone = computed(spark, trends, inputs, "2024-02-01", "2024-03-01")
    assert records(alone, *columns) == records(found, *columns)[1:2]


def test_roi_is_unknown_without_an_acquisition(spark: SparkSession):
    days = frame(
        spark,
        models.campaign_performance,
        {**performance("2024-01-01", "20"), "cost_per_acquisition": "20"},
        performance("2024-01-01", "3", campaign=2, conversions=0),
    )
    inputs = {"marketing.campaign_performance": days}
    found = computed(spark, models.roi_analysis, inputs, "2024-01-01", "2024-01-02")
    assert records(found, "campaign_id", "roi") == [("1", "-0.750000"), ("2", None)]


def test_ad_events_are_the_same_for_the_same_seed_and_others_for_another(spark: SparkSession):
    def made(seed: int) -> list[tuple[str | None, ...]]:
        return records(generate_events(spark, rows=500, seed=seed, days=3))

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_ad_events_are_as_the_source_declares_and_as_ads_are(spark: SparkSession):
    found = generate_events(spark, rows=60_000, seed=7).localCheckpoint()
    assert found.dtypes == [(column.name, column.dtype) for column in sources.ad_events.schema]
    seen = found.agg(
        F.count_distinct("event_date"),
        F.min("event_date"),
        F.max("event_date"),
        F.count_distinct("campaign_id"),
        F.count_distinct("channel"),
        F.count_distinct("event_type"),
        F.count_distinct("attribution"),
    ).collect()[0]
    assert tuple(map(str, seen)) == ("540", "2024-01-01", "2025-06-23", "60", "5", "3", "3")
    days_late = F.expr("reported_at - event_time")
    wrong = found.where(
        (F.col("event_date") != F.to_date("event_time"))
        | (days_late < F.expr("INTERVAL 0 DAYS"))
        | (days_late >= F.expr("INTERVAL 3 DAYS"))
        | (F.col("cost") < 0)
        | (F.expr("event_type = 'conversion'") != F.col("conversion_value").isNotNull())
        | (F.col("conversion_value").isNull() != F.col("attribution").isNull())
    )
    assert wrong.isEmpty()
    assert not found.where("TO_DATE(reported_at) > event_date").isEmpty()
