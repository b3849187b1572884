"""Wait for what another run holds: cells, a slot, a table's lock, the turn of a plan."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    wait_exponential,
    wait_random,
)

from backfill_assets.engine.project.heartbeat import renewing_claims
from backfill_assets.state.locks import PlanLeasedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenacity.stop import stop_base

    from backfill_assets.engine.project.project import InProject

FIRST, LONGEST, SLOWER = 0.05, 1.0, 1.1
"""Seconds until a run looks again: at first, at most, and how much longer each time. So what comes free
lies idle for about a tenth of the time that was waited for it. Some chance is added, so that those who
wait don't all look at once."""


def until_free(
    held: type[Exception] | tuple[type[Exception], ...],
    stop: stop_base,
    interrupted: threading.Event | None = None,
) -> Retrying:
    """Look again until another run gives back what it holds.

    Args:
        held: the errors that say that it is held; the last one is raised in the end.
        stop: when to give up.
        interrupted: ends a pause early; the caller's `stop` decides what follows.
    """
    return Retrying(
        retry=retry_if_exception_type(held),
        wait=wait_exponential(FIRST, LONGEST, SLOWER) + wait_random(0, 2 * FIRST),
        stop=stop,
        sleep=sleep_using_event(interrupted or threading.Event()),
        reraise=True,
    )


@contextmanager
def leased(run: InProject, name: str, wait: float = 0.0) -> Iterator[None]:
    """Hold the lease of a name, however long: no other process does at the same time what goes by it.

    Args:
        run: who asks; its id holds the lease.
        name: of the lease.
        wait: seconds to wait for another process that holds it.

    Raises:
        PlanLeasedError: another process holds it, and did not give it back in time.
    """
    free = until_free(PlanLeasedError, stop_after_delay(wait))
    free(run.store.locks.take_lease, name, run.run_id)
    try:
        with renewing_claims(run.store, run.run_id):
            yield
    finally:
        run.store.locks.release_lease(name, run.run_id)
