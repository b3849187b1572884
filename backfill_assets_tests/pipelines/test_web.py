from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from backfill_assets.models.upstream import Upstream
from backfill_assets.pipelines.web import models, sources
from backfill_assets.pipelines.web.page_views import generate_page_views
from backfill_assets.pipelines.web.sessions import LOOKBACK_HOURS
from backfill_assets_tests.pipelines.computing import computed, frame, instant, records
from backfill_assets_tests.pipelines.session_oracle import SILENCE, midnight, sessions_of

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FIRST = instant("2025-05-01")
DAYS = 8
HOUR = timedelta(hours=1)


def views_of(user: str, times: list[datetime]) -> list[dict[str, str]]:
    return [
        {"event_id": f"{user}-{n}", "event_time": f"{at}", "user_id": user, "page": f"/{n % 3}"}
        for n, at in enumerate(times)
    ]


def history() -> dict[str, list[datetime]]:
    """Users who do everything that has ever broken a sessionisation."""
    chance = random.Random(11)  # noqa: S311 - test data
    end = FIRST + DAYS * 24 * HOUR

    def every(start: datetime, step: timedelta, count: int) -> list[datetime]:
        return [at for n in range(count) if (at := start + n * step) < end]

    almost = SILENCE - timedelta(seconds=1)
    users = {
        "at_midnight": [FIRST + n * 24 * HOUR for n in range(DAYS)],
        "silence_to_the_second": every(FIRST + 23 * HOUR, SILENCE, 20),
        "almost_silent": every(FIRST + 23 * HOUR, almost, 20),
        "closes_at_midnight": [FIRST + 47.5 * HOUR, FIRST + 71.5 * HOUR],
        "never_sleeps": every(FIRST, almost, 1_000),
        "two_days_from_noon": every(FIRST + 12 * HOUR, almost, 24 * 4),
        "old_chain_ends_before_midnight": every(FIRST + HOUR, SILENCE / 2, 4 * 47 - 2),
        "old_chain_goes_on_after_midnight": every(FIRST + HOUR, SILENCE / 2, 4 * 47 + 3),
        "starts_a_microsecond_before": [FIRST + 24 * HOUR - timedelta(microseconds=1)],
    }
    for number in range(60):
        at, times = FIRST + chance.random() * 72 * HOUR, []
        pace = chance.choice([1, 5, 20, 29, 31, 120])
        while at < end and len(times) < 400:
            times.append(at.replace(microsecond=0))
            at += timedelta(minutes=chance.choice([1, pace, pace, 29.5, 30]))
            at += chance.random() * timedelta(hours=8) * (chance.random() < 0.01)
        users[f"u{number}"] = times
    return users


def sessions_in(spark: SparkSession, views: DataFrame, start: datetime, days: int) -> DataFrame:
    """Compute days of sessions from the views that the declaration lets them read."""
    end = start + timedelta(days=days)
    seen = views.where(
        (F.col("event_time") >= start - LOOKBACK_HOURS * HOUR) & (F.col("event_time") < end)
    )
    return computed(
        spark,
        models.sessions,
        {"web.events": seen},
        start.strftime("%Y-%m-%d"),
        end.strftime("%Y-%m-%d"),
    )


COLUMNS = ("session_date", "user_id", "started_at", "ended_at", "closed_at", "page_views")


def test_days_computed_one_by_one_or_together_hold_each_session_once(spark: SparkSession):
    users = history()
    rows = [view for user, times in users.items() for view in views_of(user, times)]
    views = frame(spark, models.events, *rows).localCheckpoint()
    whole = sorted(
        tuple(
            map(
                _text,
                (
                    session.day.date(),
                    user,
                    session.started_at,
                    session.ended_at,
                    session.closed_at,
                    session.page_views,
                ),
            )
        )
        for user, times in users.items()
        for session in sessions_of(user, times)
        if session.day < FIRST + timedelta(days=DAYS)
    )
    together = records(sessions_in(spark, views, FIRST, DAYS), *COLUMNS)
    assert together == whole
    one_by_one = [
        record
        for day in range(DAYS)
        for record in records(sessions_in(spark, views, FIRST + timedelta(days=day), 1), *COLUMNS)
    ]
    assert sorted(one_by_one) == whole


def _text(value: object) -> str:
    return str(value).replace("+00:00", "")


def test_oracle_sees_every_kind_of_session():
    users = history()
    found = [session for user, times in users.items() for session in sessions_of(user, times)]
    assert any(midnight(session.started_at) < midnight(session.ended_at) for session in found)
    assert any(session.closed_at == session.limit < session.ended_at + SILENCE for session in found)
    assert any(session.started_at > session.chain_start for session in found)
    assert max(session.closed_at - session.started_at for session in found) <= timedelta(hours=48)
    assert sum(session.page_views for session in found) == sum(map(len, users.values()))


def test_a_session_that_crosses_midnight_belongs_to_the_day_in_which_it_was_over(
    spark: SparkSession,
):
    times = [instant("2025-05-01 23:50:00"), instant("2025-05-02 00:10:00")]
    views = frame(spark, models.events, *views_of("u", times))
    assert sessions_in(spark, views, FIRST, 1).isEmpty()
    over = sessions_in(spark, views, FIRST + timedelta(days=1), 1)
    assert records(over, "session_date", "page_views", "pages") == [("2025-05-02", "2", "2")]


def test_sessions_read_the_hours_that_their_rule_needs():
    assert models.sessions.reads == (Upstream("web.events", lookback=LOOKBACK_HOURS),)


def test_events_of_an_hour_are_cut_at_its_instants(spark: SparkSession):
    def view(event_id: str, at: str) -> dict[str, str]:
        known = {"event_id": event_id, "event_time": at, "ingested_at": at}
        return {**known, "event_date": at[:10], "user_id": "u", "page": "/"}

    raw = frame(
        spark,
        sources.raw_events,
        view("a", "2025-05-01 10:00:00"),
        view("b", "2025-05-01 10:59:59.999999"),
        view("c", "2025-05-01 11:00:00"),
    )
    inputs = {"web.raw_events": raw}
    found = computed(spark, models.events, inputs, "2025-05-01 10:00:00", "2025-05-01 11:00:00")
    assert records(found, "event_id") == [("a",), ("b",)]


def test_page_views_are_the_same_for_the_same_seed_and_lie_in_their_days(spark: SparkSession):
    made = generate_page_views(spark, rows=3_000, seed=7, days=2).localCheckpoint()
    assert made.dtypes == [(column.name, column.dtype) for column in sources.raw_events.schema]
    assert records(made) == records(generate_page_views(spark, rows=3_000, seed=7, days=2))
    outside = "event_date NOT IN ('2025-05-01', '2025-05-02') OR event_date != TO_DATE(event_time)"
    assert made.where(outside).isEmpty()
    assert made.where("ingested_at < event_time").isEmpty()
    assert made.select("event_id").distinct().count() == 3_000
    again = made.groupBy("event_id").agg(F.count("*"), F.count_distinct("event_time"))
    assert {tuple(row)[1:] for row in again.collect()} == {(1, 1), (2, 1)}
