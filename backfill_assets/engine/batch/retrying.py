"""Try a batch, or a look at rows, again after a transient failure, later each time.

Every attempt is a batch of its own, with its own row, claims and error. What an audit, a query or an
input failed is never tried again: the same rows would fail again. The other failures that
may pass by themselves are for a later run.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from tenacity import (
    Retrying,
    retry_if_exception,
    retry_if_result,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)

from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.project.events import Failed, TryingAgain
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.warehouse.spark.spark_errors import error_of_ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState
    from tenacity.retry import retry_base

    from backfill_assets.engine.project.batch_policy import BatchPolicy
    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.run_context import RunContext

T = TypeVar("T")


def attempted(run: RunContext, once: Callable[[], Event], put: Callable[[Event], None]) -> Event:
    """Make attempts until one ends otherwise than by a transient failure, and give the last ending.

    A run that is interrupted begins no further attempt.

    Args:
        run: says how patient it is, and when it is interrupted.
        once: makes an attempt, and gives how that ended.
        put: called with an event before each further attempt.
    """
    limit = run.project.batch_policy.attempts

    def tell(state: RetryCallState) -> None:
        failed = _ending(state)
        if isinstance(failed, Failed):
            number = state.attempt_number + 1
            put(
                TryingAgain(
                    failed.model,
                    failed.cells,
                    number,
                    limit,
                    state.upcoming_sleep,
                    failed.error,
                )
            )

    last: list[Event] = []

    def attempt() -> Event:
        if not last or not run.interrupted.is_set():
            last[:] = [once()]
        return last[0]

    again = _again(
        run.project.batch_policy,
        run.interrupted,
        retry_if_result(_ended_transiently),
        before_sleep=tell,
        retry_error_callback=_ending,
    )
    return again(attempt)


def patiently(
    policy: BatchPolicy, work: Callable[[], T], interrupted: threading.Event | None = None
) -> T:
    """Do what may be done twice, and again after a transient failure.

    Args:
        policy: how often, and how long the pauses are.
        work: what is done.
        interrupted: set when it is not to be done again.
    """
    retry = retry_if_exception(_is_transient)
    return _again(policy, interrupted or threading.Event(), retry, reraise=True)(work)


def _again(
    policy: BatchPolicy,
    interrupted: threading.Event,
    retry: retry_base,
    **ending: Any,  # noqa: ANN401 - tenacity's own
) -> Retrying:
    """Try as often as a policy says, with pauses that double, until it is interrupted."""
    return Retrying(
        retry=retry,
        wait=wait_exponential(policy.pause, policy.longest) + wait_random(0, policy.pause),
        stop=stop_after_attempt(policy.attempts) | stop_when_event_set(interrupted),
        sleep=sleep_using_event(interrupted),
        **ending,
    )


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, Exception) and kind_of(error_of_ours(error)) is FailureKind.TRANSIENT


def _ended_transiently(ending: Event) -> bool:
    return isinstance(ending, Failed) and ending.kind is FailureKind.TRANSIENT


def _ending(state: RetryCallState) -> Event:
    assert state.outcome is not None  # noqa: S101 - tenacity asks after an attempt only
    return state.outcome.result()
