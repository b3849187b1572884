"""Keep a run's claims and commit locks alive while it works."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from backfill_assets.engine.project.meanwhile import meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.state.store import Store


@contextmanager
def beating(store: Store, run_id: str) -> Iterator[None]:
    """Renew every claim and lock of a run at a third of the lease.

    A beat that fails is followed by another. If none succeeds the lease is taken over, and the fencing
    token makes our commit fail: nothing can go wrong but lost work.
    """
    every = store.lease_seconds / 3
    with meanwhile(
        lambda: store.batches.heartbeat(run_id), every=every, name=f"heartbeat of {run_id}"
    ):
        yield
