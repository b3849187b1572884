"""Cells whose batch failed: when they are asked for again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals import IntervalSet
from backfill_assets.models.audit import reconciles
from backfill_assets.models.content import ChangedAt
from backfill_assets.planning.rule.failed_cells import (
    TRIES,
    FailedCells,
    Rest,
    failed_cells,
    wait_after,
)
from backfill_assets.snapshots.failure import FailedBatch, FailureKind
from backfill_assets_tests.builders import FIRST, a_graph, a_model, a_run, a_view, day, days

if TYPE_CHECKING:
    from backfill_assets.intervals import Interval
    from backfill_assets.snapshots.state_view import ReadyRun

NOW = FIRST + timedelta(days=20)
NONE = IntervalSet.empty()
UP, DOWN = a_model("web.visits"), a_model("web.sums", upstreams=["web.visits"])
GRAPH = a_graph(UP, DOWN)


def a_failure(
    interval: Interval,
    kind: FailureKind | None = FailureKind.AUDIT,
    *,
    built_at: int = 10,
    ago: float = 1.0,
    fingerprint: str = "fingerprint",
    run: str = "",
) -> FailedBatch:
    return FailedBatch(
        f"batch-{built_at}",
        "web.sums",
        "web.sums__v1",
        fingerprint,
        run or f"run-{built_at}",
        IntervalSet.of([interval]),
        kind,
        built_at,
        NOW - timedelta(minutes=ago),
    )


def held(
    *failed: FailedBatch,
    up: tuple[ReadyRun, ...] = (a_run(day(1, 9), 5),),
    own: tuple[ReadyRun, ...] = (),
) -> FailedCells:
    view = a_view({"web.visits": up, "web.sums": own})
    return failed_cells(GRAPH, view, DOWN, failed, now=NOW)


def tried(
    times: int, kind: FailureKind = FailureKind.TRANSIENT, *, ago: float
) -> list[FailedBatch]:
    """Batches of as many runs."""
    return [a_failure(day(2), kind, built_at=number, ago=ago) for number in range(10, 10 + times)]


@pytest.mark.parametrize("kind", [FailureKind.AUDIT, FailureKind.CODE, FailureKind.INPUT])
def test_a_failure_of_code_or_rows_is_for_good_while_nothing_changes(kind: FailureKind):
    assert held(a_failure(day(2, 2), kind, ago=10_000)) == FailedCells(days(2, 3), NONE)


def test_another_snapshot_is_asked_again():
    assert held(a_failure(day(2), fingerprint="before")) == FailedCells()


def test_a_change_of_what_a_failed_batch_read_opens_all_of_its_cells_and_no_others():
    changed = (a_run(day(1, 2), 5), a_run(day(3), 12), a_run(day(4, 5), 5))

    found = held(a_failure(day(2, 2)), a_failure(day(5)), up=changed)

    assert found == FailedCells(days(5), NONE)


def test_a_changed_column_opens_a_failed_cell_that_reads_or_audits_it():
    changed = (replace(a_run(day(2), 5), changed_at=ChangedAt(5, {"cost": 12})),)
    view = a_view({"web.visits": changed, "web.sums": ()})
    reads = {"web.visits": frozenset({"id"})}
    audited = replace(DOWN, audits=(reconciles("cost", "web.visits"),))

    for model, cells in ((DOWN, days(2)), (audited, NONE)):
        graph = a_graph(UP, model)
        found = failed_cells(graph, view, model, [a_failure(day(2))], now=NOW, reads=reads)
        assert found.cells == cells


def test_cells_whose_input_could_not_be_read_are_asked_again_once_it_is_built_again_alike():
    """Its files may have been lost: content that is the same is no change for any other failure."""
    repaired = (a_run(day(2), 12, 5),)

    assert held(a_failure(day(2), FailureKind.INPUT), up=repaired) == FailedCells()
    assert held(a_failure(day(2), FailureKind.CODE), up=repaired).for_good == days(2)


def test_a_passing_failure_rests_for_a_while_and_comes_again():
    early = a_failure(day(2), FailureKind.TRANSIENT, ago=1)
    late = a_failure(day(2), FailureKind.TRANSIENT, ago=3)

    assert held(early).for_now == days(2)
    assert held(late) == FailedCells()


def test_each_time_it_rests_twice_as_long_but_an_hour_at_most():
    assert [wait_after(tries) for tries in (1, 2, 3)] == [timedelta(minutes=m) for m in (2, 4, 8)]
    assert held(*tried(2, ago=3)).for_now == days(2)
    assert held(*tried(2, ago=5)) == FailedCells()
    assert wait_after(6) == wait_after(1000) == timedelta(hours=1)


def test_an_outage_that_takes_days_needs_nobody():
    assert held(*tried(1000, ago=59)).for_now == days(2)
    assert held(*tried(1000, ago=61)) == FailedCells()


def test_what_takes_too_long_each_time_comes_again_some_times_and_then_waits_for_a_person():
    often, too_often = (tried(count, FailureKind.TIMEOUT, ago=61) for count in (TRIES, TRIES + 1))

    assert held(*often) == FailedCells()
    assert held(*too_often) == FailedCells(days(2), NONE)


def test_what_takes_too_long_after_an_outage_comes_again_as_often_as_without_one():
    outage = tried(100, ago=200)
    first = a_failure(day(2), FailureKind.TIMEOUT, built_at=200, ago=61)

    assert held(*outage, first) == FailedCells()


def test_what_failed_before_the_cell_was_built_is_no_try_of_now():
    before = tried(1000, ago=5000)
    again = a_failure(day(2), FailureKind.TRANSIENT, built_at=2000, ago=3)

    assert held(*before, again, own=(a_run(day(2), 1500),)) == FailedCells()
    assert held(*before, again).for_now == days(2)


def test_a_rest_says_when_it_is_over_and_which_batch_it_is_about():
    later = a_failure(day(2), FailureKind.TRANSIENT, ago=0.5)
    sooner = a_failure(day(5), FailureKind.TRANSIENT, ago=1.5, built_at=11)

    assert held(later, sooner).rest == Rest(NOW + timedelta(minutes=0.5), "batch-11")


def test_what_one_run_tried_several_times_counts_once():
    often = [
        a_failure(day(2), FailureKind.TRANSIENT, built_at=number, ago=3, run="r")
        for number in range(10, 30)
    ]

    assert held(*often) == FailedCells()


def test_cancelling_is_no_try():
    cancelled = [
        a_failure(day(2), FailureKind.CANCELLED, built_at=number, ago=3) for number in range(10, 30)
    ]

    assert held(*cancelled) == FailedCells()


def test_the_last_batch_over_a_cell_has_the_last_word():
    older = a_failure(day(1, 3), FailureKind.AUDIT, built_at=10)
    newer = a_failure(day(2), FailureKind.TRANSIENT, built_at=20, ago=3)

    assert held(older, newer) == FailedCells(days(1, 3), NONE)


@pytest.mark.parametrize("kind", [FailureKind.AUDIT, FailureKind.CODE, FailureKind.INPUT])
def test_stretches_that_failed_together_come_again_until_each_was_tried_alone(kind: FailureKind):
    together = replace(a_failure(day(1), kind, ago=3), cells=days(1, 3, 5))
    alone = a_failure(day(3), kind, built_at=20, ago=2)

    assert held(together) == FailedCells()
    assert held(replace(together, ended=NOW)).for_now == days(1, 3, 5)
    assert held(together, alone) == FailedCells(days(3), NONE)


def test_stretches_that_took_too_long_together_come_again_as_often_as_one_does():
    each = tried(TRIES + 1, FailureKind.TIMEOUT, ago=61)

    assert held(*(replace(batch, cells=days(2, 4)) for batch in each)).for_good == days(2, 4)


def test_what_was_built_since_did_not_fail():
    assert held(a_failure(day(2)), own=(a_run(day(2), 11),)) == FailedCells()
    assert held(a_failure(day(2)), own=(a_run(day(2), 9),)) == FailedCells(days(2), NONE)
