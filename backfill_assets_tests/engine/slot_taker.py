"""A process whose threads take slots, work and give them back, on one state with others.

`python -m ... URL RUN FIRST LAST fills|moves|dies LEASE`: each day from FIRST to LAST is a batch.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tenacity import retry, retry_if_exception_type, wait_random

from backfill_assets.engine.batch.opening_batch import open_when_free
from backfill_assets.engine.project import waiting
from backfill_assets.engine.project.heartbeat import renewing_claims
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.locks import TableLockedError
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Asked, commit_of, days

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.project.events import Delayed
    from backfill_assets.snapshots.batch import OpenBatch

OVERALL = 3
PER_MODEL = 2
MODELS = ("orders", "refunds", "clicks")
THREADS = 4


class Opener:
    """As much of a run as opening a batch needs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.interrupted = threading.Event()

    def resources(self, _: str) -> dict[str, str]:
        return {}


def now() -> datetime:
    return datetime.now(UTC)


def opened(run: Any, asked: Asked, tell: Callable[[Delayed], object]) -> OpenBatch:  # noqa: ANN401
    """Open a batch when it may be, and tell what it waits for."""
    waiting = open_when_free(run, asked.request)
    while True:
        try:
            tell(next(waiting))
        except StopIteration as ended:
            return ended.value


def fill(store: Store, run_id: str, number: int, what: str) -> None:
    """Take a slot, work for a moment, commit and record."""
    asked = Asked(
        model=MODELS[number % len(MODELS)],
        start=number,
        end=number + 1,
        run=run_id,
        slots=Slots(PER_MODEL, OVERALL),
    )
    batch, began = opened(Opener(store), asked, repr), now()
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    if what == "moves":
        _move_rows(store, batch)
    _commit(store, batch, began)


@retry(retry=retry_if_exception_type(CellsClaimedError), wait=wait_random(0, 0.02))
def _move_rows(store: Store, batch: OpenBatch) -> None:
    """Rows of every day also lie in one far cell, which one batch at a time can have."""
    store.batches.claim_more(batch.request.batch_id, IntervalSet.of([days(500, 501)]))


@retry(retry=retry_if_exception_type(TableLockedError), wait=wait_random(0, 0.02))
def _commit(store: Store, batch: OpenBatch, began: datetime) -> None:
    request = batch.request
    lock = store.locks.take_commit_lock(request.version, request.batch_id)
    commit = replace(commit_of(batch, lock), started_at=began)
    head = lock.known_head + 1
    store.batches.record(commit, lock, head, bytes_written=1, finished_at=now())
    store.locks.release_commit_lock(lock)


def main(url: str, run_id: str, first: str, last: str, what: str, lease: str) -> None:
    waiting.FIRST = waiting.LONGEST = 0.005
    with (
        Store.open(url, clock=now, lease_seconds=float(lease)) as store,
        renewing_claims(store, run_id),
        ThreadPoolExecutor(THREADS) as pool,
    ):
        work = [
            pool.submit(fill, store, run_id, number, what)
            for number in range(int(first), int(last) + 1)
        ]
        for future in work:
            future.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
