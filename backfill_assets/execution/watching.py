"""Watch over a run's batches: their time, what a person says of their plan, and the run's own end."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from backfill_assets.execution.cancelling import PlanCancelledError, RunCancelledError
from backfill_assets.snapshots.queued_plan import Control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.execution.run_context import RunContext

_log = logging.getLogger(__name__)
LOOK = 0.5
"""Seconds between two looks at the batches in flight."""
ASK = 2.0
"""Seconds between two looks at what a person has said of the plan."""


@contextmanager
def watching(run: RunContext) -> Iterator[None]:
    """Cancel batches whose time is over, or whose plan is stopped at once, from a thread of its own."""
    ended = threading.Event()

    def watch() -> None:
        asked = monotonic()
        while not ended.wait(LOOK):
            try:
                run.flights.look()
                if monotonic() - asked >= ASK:
                    asked = monotonic()
                    heed(run)
            except Exception as error:  # noqa: BLE001 - one look that fails is followed by another
                _log.warning("run %s: a look at its batches failed: %s", run.run_id, error)

    thread = threading.Thread(target=watch, name=f"watch-{run.run_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def heed(run: RunContext) -> None:
    """Cancel the batches of a plan that is stopped at once."""
    if run.plan_id is not None and run.store.control_of(run.plan_id) is Control.CANCELLED:
        run.flights.cancel(PlanCancelledError(run.plan_id))


@contextmanager
def giving_up(run: RunContext) -> Iterator[None]:
    """When a run ends before its batches, let what waits give up, and cancel what is in flight.

    Ctrl-C is patient: batches in flight come to their end. So is an error of whoever listens.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        run.interrupted.set()
        raise
    except BaseException:
        run.interrupted.set()
        run.flights.cancel(RunCancelledError(run.run_id))
        raise
