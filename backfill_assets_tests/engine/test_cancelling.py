"""Giving a batch up: at any instant until its commit turn, and never after it has come."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.project import cancelling
from backfill_assets.engine.project.cancelling import (
    BatchTimeoutError,
    PlanCancelledError,
    RunCancelledError,
    RunningBatches,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.project.cancelling import RunningBatch

STOPPED = PlanCancelledError("p1")


class Spark:
    """Counts how often it was interrupted."""

    def __init__(self) -> None:
        self.interrupted = 0

    def __call__(self) -> None:
        self.interrupted += 1


class JobCancelledError(Exception):
    """What Spark raises where its job was cancelled."""


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(cancelling, "monotonic", lambda: now[0])
    return now


def fly(
    flights: RunningBatches,
    do: Callable[[RunningBatch], object],
    spark: Spark,
    seconds: float | None = None,
) -> None:
    """Let a batch fly, and do something meanwhile."""
    with flights.begun("m", spark, seconds) as flight:
        do(flight)


def test_what_spark_raises_for_a_cancelled_batch_becomes_the_reason_that_was_given():
    flights, spark = RunningBatches(), Spark()

    def cancelled(_: RunningBatch) -> None:
        flights.cancel(STOPPED)
        raise JobCancelledError

    with pytest.raises(PlanCancelledError) as caught:
        fly(flights, cancelled, spark)
    assert isinstance(caught.value.__cause__, JobCancelledError)
    assert spark.interrupted == 1


def test_an_error_of_a_batch_that_nobody_cancelled_stays_what_it_is():
    with pytest.raises(JobCancelledError), RunningBatches().begun("m", Spark(), None):
        raise JobCancelledError


def test_a_batch_between_two_jobs_is_interrupted_again_until_it_ends():
    flights, spark = RunningBatches(), Spark()

    def cancelled(flight: RunningBatch) -> None:
        flights.cancel(STOPPED)
        flights.look()
        flights.look()
        flight.check()

    with pytest.raises(PlanCancelledError):
        fly(flights, cancelled, spark)
    flights.look()
    assert spark.interrupted == 3


def test_a_batch_whose_commit_turn_has_come_is_neither_cancelled_nor_timed_out(time: list[float]):
    flights, spark = RunningBatches(), Spark()

    def committing(flight: RunningBatch) -> None:
        flight.commits()
        time[0] = 6
        flights.look()
        flights.cancel(STOPPED)
        flight.check()

    fly(flights, committing, spark, seconds=5)
    assert spark.interrupted == 0


def test_a_batch_that_was_cancelled_does_not_get_its_commit_turn():
    flights = RunningBatches()

    def cancelled(flight: RunningBatch) -> None:
        flights.cancel(STOPPED)
        flight.commits()

    with pytest.raises(PlanCancelledError):
        fly(flights, cancelled, Spark())


def test_a_batch_is_either_cancelled_or_gets_its_turn_and_then_nothing_interrupts_it():
    for _ in range(200):
        flights, spark, came = RunningBatches(), Spark(), threading.Event()

        def turn(flight: RunningBatch, came: threading.Event = came) -> None:
            flight.commits()
            came.set()

        def flown(flights: RunningBatches = flights, spark: Spark = spark) -> None:
            with contextlib.suppress(PlanCancelledError):
                fly(flights, turn, spark)

        thread = threading.Thread(target=flown)
        thread.start()
        flights.cancel(STOPPED)
        thread.join()
        assert not (came.is_set() and spark.interrupted)


def test_a_batch_is_timed_out_when_its_seconds_are_over_and_not_before(time: list[float]):
    flights, spark = RunningBatches(), Spark()
    reached: list[float] = []

    def slow(flight: RunningBatch) -> None:
        for time[0] in (5, 5.1):
            flights.look()
            flight.check()
            reached.append(time[0])

    with pytest.raises(BatchTimeoutError, match="within 5 s"):
        fly(flights, slow, spark, seconds=5)
    assert (reached, spark.interrupted) == ([5], 1)


def test_one_without_a_limit_may_take_any_time(time: list[float]):
    flights = RunningBatches()

    def slow(flight: RunningBatch) -> None:
        time[0] = 10**9
        flights.look()
        flight.commits()

    fly(flights, slow, Spark())


def test_what_builds_the_cells_of_a_plan_that_was_stopped_is_named():
    assert "`backfill resume p1`, then `backfill apply p1`" in str(PlanCancelledError("p1"))


def test_the_first_reason_is_the_one_that_is_kept():
    flights = RunningBatches()

    def cancelled(flight: RunningBatch) -> None:
        flights.cancel(STOPPED)
        flights.cancel(RunCancelledError("r"))
        flight.check()

    with pytest.raises(PlanCancelledError):
        fly(flights, cancelled, Spark())


def test_a_batch_that_begins_after_its_run_was_cancelled_ends_at_once():
    flights = RunningBatches()
    flights.cancel(STOPPED)
    begun: list[RunningBatch] = []
    with pytest.raises(PlanCancelledError):
        fly(flights, begun.append, Spark())
    assert not begun


def test_a_spark_that_is_gone_hinders_nobody():
    flights, other = RunningBatches(), Spark()

    def gone() -> None:
        raise ConnectionRefusedError

    def cancelled(flight: RunningBatch) -> None:
        flights.cancel(STOPPED)
        flight.check()

    with flights.begun("gone", gone, None), pytest.raises(PlanCancelledError):
        fly(flights, cancelled, other)
    assert other.interrupted == 1
