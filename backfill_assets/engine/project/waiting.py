"""Wait for what another run holds: cells, a slot, a table's lock, the turn of a plan."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    wait_exponential,
    wait_random,
)

if TYPE_CHECKING:
    from tenacity.stop import stop_base

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
