"""Watch over a run's batches: their time, what a person says of their plan, and the run's own end."""

from __future__ import annotations

from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from backfill_assets.engine.project.cancelling import PlanCancelledError, RunCancelledError
from backfill_assets.engine.project.heartbeat import repeatedly
from backfill_assets.snapshots.queued_plan import Control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.run_context import RunContext

LOOK = 0.5
"""Seconds between two looks at the batches in flight."""
ASK = 2.0
"""Seconds between two looks at what a person has said of the plan."""


@contextmanager
def watching(run: RunContext) -> Iterator[None]:
    """Cancel batches whose time is over, or whose plan is stopped at once."""
    asked_at = monotonic()

    def watch() -> None:
        nonlocal asked_at
        run.flights.look()
        if monotonic() - asked_at >= ASK:
            asked_at = monotonic()
            cancel_if_stopped(run)

    with repeatedly(watch, every=LOOK, name=f"watch over {run.run_id}"):
        yield


def cancel_if_stopped(run: RunContext) -> None:
    """Cancel the batches of a plan that is stopped at once."""
    if run.plan_id is not None and run.store.queue.control_of(run.plan_id) is Control.CANCELLED:
        run.flights.cancel(PlanCancelledError(run.plan_id))


@contextmanager
def giving_up(run: RunContext) -> Iterator[None]:
    """When a run ends before its batches, let what waits give up, and cancel what is in flight.

    Ctrl-C is patient: batches in flight come to their end. So is an error of a listener.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        run.interrupted.set()
        raise
    except BaseException:
        run.interrupted.set()
        run.flights.cancel(RunCancelledError(run.run_id))
        raise
