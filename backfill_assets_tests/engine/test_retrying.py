"""Trying again: only what may pass by itself, never more often than allowed, later each time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.engine.batch.retrying import attempted
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import Failed, Skipped, TryingAgain
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets_tests.builders import days

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.project.events import Event

DONE = Skipped("web.visits", {})
patiences = st.builds(
    BatchPolicy, attempts=st.integers(1, 8), pause=st.floats(0, 60), longest=st.floats(0, 600)
)


def failed(kind: FailureKind, error: str = "spark was lost") -> Failed:
    return Failed("web.visits", "b", days(1), error, kind=kind)


@dataclass
class Sleepless(threading.Event):
    """An event that nobody waits for, and that remembers how long they would have."""

    waited: list[float] = field(default_factory=list)
    then: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        super().__init__()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0.0)
        self.then()
        return self.is_set()


@dataclass
class Run:
    """A run of one batch whose attempts end as they are told; then it succeeds."""

    batch_policy: BatchPolicy
    endings: list[Event]
    interrupted: Sleepless = field(default_factory=Sleepless)
    told: list[TryingAgain] = field(default_factory=list)
    attempts: int = 0

    def go(self) -> Event:
        project = SimpleNamespace(batch_policy=self.batch_policy)
        run: Any = SimpleNamespace(project=project, interrupted=self.interrupted)
        put: Any = self.told.append
        return attempted(run, self.once, put)

    def once(self) -> Event:
        self.attempts += 1
        return self.endings.pop(0) if self.endings else DONE


@given(patiences, st.integers(0, 12))
def test_attempts_never_exceed_the_limit_and_each_further_one_is_told(
    batch_policy: BatchPolicy, failures: int
):
    run = Run(batch_policy, [failed(FailureKind.TRANSIENT)] * failures)
    ending = run.go()
    assert run.attempts == min(failures + 1, batch_policy.attempts)
    assert ending == (DONE if failures < batch_policy.attempts else failed(FailureKind.TRANSIENT))
    assert [event.attempt for event in run.told] == list(range(2, run.attempts + 1))
    assert [event.seconds for event in run.told] == run.interrupted.waited
    assert {event.limit for event in run.told} <= {batch_policy.attempts}


@given(st.integers(2, 8), st.floats(0.1, 60), st.floats(1, 600))
def test_delays_grow_up_to_the_longest_with_chance_in_them(
    attempts: int, pause: float, longest: float
):
    run = Run(BatchPolicy(attempts, pause, longest), [failed(FailureKind.TRANSIENT)] * attempts)
    run.go()
    for number, seconds in enumerate(run.interrupted.waited):
        least = min(pause * 2**number, longest)
        assert least <= seconds <= least + pause
    growing = [each for each in run.interrupted.waited if each < longest]
    assert growing == sorted(growing)


def test_two_batches_that_failed_together_do_not_come_back_together():
    runs = [Run(BatchPolicy(), [failed(FailureKind.TRANSIENT)]) for _ in range(2)]
    for run in runs:
        run.go()
    assert runs[0].interrupted.waited != runs[1].interrupted.waited


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - {FailureKind.TRANSIENT}))
def test_what_an_audit_a_query_an_input_or_a_person_ended_is_not_tried_again(kind: FailureKind):
    run = Run(BatchPolicy(), [failed(kind)])
    assert run.go() == failed(kind)
    assert (run.attempts, run.told) == (1, [])


def test_a_batch_that_fails_otherwise_the_second_time_ends_there():
    endings: list[Event] = [failed(FailureKind.TRANSIENT), failed(FailureKind.AUDIT, "audit")]
    run = Run(BatchPolicy(), endings)
    assert run.go() == failed(FailureKind.AUDIT, "audit")
    assert run.attempts == 2


def test_a_run_that_is_interrupted_while_a_batch_waits_begins_no_further_attempt():
    run = Run(BatchPolicy(), [failed(FailureKind.TRANSIENT)])
    run.interrupted.then = run.interrupted.set
    assert run.go() == failed(FailureKind.TRANSIENT)
    assert run.attempts == 1


def test_what_is_told_names_the_attempt_the_delay_and_the_cause():
    run = Run(BatchPolicy(pause=4), [failed(FailureKind.TRANSIENT)])
    run.go()
    (told,) = run.told
    assert told.words.startswith("attempt 2 of 3 in ")
    assert told.words.endswith(" s, because spark was lost")
