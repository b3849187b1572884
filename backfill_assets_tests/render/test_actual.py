from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backfill_assets.render.actual import actual_of, actual_text
from backfill_assets.render.plan_words import estimate_text
from backfill_assets.snapshots.stored_plan import PlanEvent, PlanEventKind
from backfill_assets.snapshots.timing import Timing
from backfill_assets_tests.render.plans import NOON, added_columns
from backfill_assets_tests.render.test_plan_life import a_batch

PLAN = added_columns()


def committed(seconds: int):
    return a_batch(
        *("2024-01-01", "2024-01-31", "committed"),
        started_at=NOON,
        finished_at=NOON + timedelta(seconds=seconds),
        delta_version=3,
        bytes_written=1500,
    )


def an_event(event: str, **detail: object) -> PlanEvent:
    return PlanEvent(PLAN.plan_id, 1, NOON, event, "ada", detail=detail)


def test_what_a_plan_took_is_summed_over_its_applies_and_its_own_batches():
    failed = replace(committed(50), status="failed", finished_at=None)
    told = [
        an_event("stopped", seconds=40.0),
        an_event("built", seconds=20.0),
        an_event(PlanEventKind.MEASURED, seconds=9.0),
    ]

    found = actual_of(told, [committed(30), committed(20), failed])

    assert (found.seconds, found.batch_seconds) == (60.0, 50.0)
    assert (found.batches, found.failed, found.rows) == (2, 1, 20)


def test_what_it_took_stands_beside_what_was_expected():
    found = actual_of([], [committed(30)])

    assert actual_text(PLAN, found) == (
        "took 30 s, 1 batch, 10 rows, 1.5 kB written; estimated 3 min 20 s (P50), 1 h 05 min (P90)"
    )
    assert "estimated" not in actual_text(replace(PLAN, estimate=None), found)


def test_what_a_plan_took_has_the_start_of_spark_and_the_promotion_in_it():
    timings = [
        Timing("apply", {"starting Spark": 5.0, "building": 20.0}),
        Timing("promote", {"comparing": 3.0, "publishing": 4.0}),
    ]

    assert actual_of([an_event("built", seconds=20.0)], [], timings).seconds == 32.0


def test_time_in_which_two_processes_work_on_a_plan_counts_once():
    ends = (NOON, NOON + timedelta(seconds=5), NOON + timedelta(hours=1))
    timings = [
        Timing("apply", {"building": 20.0}, at=ends[0]),
        Timing("apply", {"building": 35.0}, at=ends[1]),
        Timing("promote", {"publishing": 4.0}, at=ends[2]),
    ]

    assert actual_of([], [], timings).seconds == 39.0


def test_batches_of_an_apply_that_was_interrupted_count_although_it_stored_no_time():
    timings = [Timing("apply", {"building": 20.0}, at=NOON + timedelta(hours=1))]

    assert actual_of([], [committed(30), committed(40)], timings).seconds == 60.0


def test_what_was_expected_says_of_what_it_is_made():
    assert PLAN.estimate is not None
    estimate = replace(PLAN.estimate, start=12.0, batches=160.0, promotion=28.0)
    found = actual_of([], [committed(30)])

    parts = "(P90): start 12 s, batches 2 min 40 s, promotion 28 s"
    assert actual_text(replace(PLAN, estimate=estimate), found).endswith(parts)
    assert f"{parts}; cost" in estimate_text(estimate)
