"""Act at intervals beside the work: keep a run's claims and commit locks alive, ask whether to stop."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.state.store import Store


@contextmanager
def renewing_claims(
    store: Store, run_id: str, afterwards: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Renew every claim and lock of a run at a third of the lease.

    A beat that fails is soon followed by another. If none succeeds the lease is taken over, and the fencing
    token makes our commit fail: nothing can go wrong but lost work.

    Args:
        store: the state.
        run_id: of the run.
        afterwards: called after each beat.
    """

    def beat() -> None:
        store.batches.heartbeat(run_id)
        afterwards()

    pause = store.lease_seconds / 3
    with repeatedly(beat, every=pause, again=pause / 10, name=f"heartbeat of {run_id}"):
        yield


_log = logging.getLogger(__name__)


@contextmanager
def repeatedly(
    act: Callable[[], object], *, every: float, again: float | None = None, name: str
) -> Iterator[None]:
    """Call a function at intervals, in a thread of its own, until the block ends.

    Args:
        act: the function. A failure is logged; the next call may succeed.
        every: seconds between two calls, and before the first.
        again: seconds after a call that failed; None: as after any.
        name: of the thread, and of what is done in the log.
    """
    ended = threading.Event()

    def go_on() -> None:
        pause = every
        while not ended.wait(pause):
            pause = every
            try:
                act()
            except Exception as error:  # noqa: BLE001 - it must not end the thread
                pause = every if again is None else again
                _log.warning("%s failed, and is tried again: %s", name, error)

    thread = threading.Thread(target=go_on, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
