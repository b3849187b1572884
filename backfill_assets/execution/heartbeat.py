"""Keep a run's claims and commit locks alive while it works."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.state.store import Store

_log = logging.getLogger(__name__)


@contextmanager
def beating(store: Store, run_id: str) -> Iterator[None]:
    """Renew every claim and lock of a run at a third of the lease, from a thread of its own."""
    stopped = threading.Event()

    def beat() -> None:
        while not stopped.wait(store.lease_seconds / 3):
            try:
                store.heartbeat(run_id)
            except Exception as error:  # noqa: BLE001 - one that ends the thread ends the lease
                # The next beat may succeed; if none does, the lease is taken over and the fencing
                # token makes our commit fail, so nothing can go wrong but lost work.
                _log.warning("run %s: heartbeat failed: %s", run_id, error)

    thread = threading.Thread(target=beat, name=f"heartbeat-{run_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
