"""Waiting for a slot: alone, beside other threads, and beside other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.project import waiting
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.limits import NoSlotError
from backfill_assets.state.queue import PlanPausedOrStoppedError
from backfill_assets.state.store import Store
from backfill_assets_tests.engine import slot_taker
from backfill_assets_tests.engine.slot_taker import (
    MODELS,
    OVERALL,
    PER_MODEL,
    Opener,
    opened,
)
from backfill_assets_tests.new_state import empty_postgres
from backfill_assets_tests.state.building import NOON, Asked, Clock, add_model, write
from backfill_assets_tests.state.conftest import POSTGRES
from backfill_assets_tests.state.queueing import keep_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from backfill_assets.engine.project.events import Delayed
    from backfill_assets.state.batch_rows import BatchRow

ONE = Slots(model=1)
LONG, SHORT = 300.0, 1.0
"""Leases: one that no process on a busy machine is silent for, and one that is soon over."""
HELD, WANTED = Asked(start=0, end=1, slots=ONE), Asked(start=1, end=2, run="run-2", slots=ONE)


@pytest.fixture(params=["sqlite", "postgresql"] if POSTGRES else ["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    empty_postgres(str(POSTGRES))
    return str(POSTGRES)


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A state on a clock that stands still, and a waiter that looks again at once."""
    monkeypatch.setattr(waiting, "FIRST", 0.0)
    with Store.open(url, clock=Clock(), lease_seconds=0.01) as found:
        add_model(found, "orders")
        yield found


class Waiter(threading.Thread):
    """Opens a batch in a thread."""

    def __init__(self, store: Store, asked: Asked) -> None:
        super().__init__()
        self.run_, self.asked = Opener(store), asked
        self.told: list[Delayed] = []
        self.error: BaseException | None = None
        self.looked = threading.Event()
        self._count = Counter[str]()
        self.start()

    def run(self) -> None:
        try:
            opened(_Counting(self), self.asked, self.told.append)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            self.looked.set()

    def look(self, request: object) -> object:
        """Try to open; the test knows when that was tried often enough."""
        self._count["looks"] += 1
        if self._count["looks"] > 20:
            self.looked.set()
        return self.run_.store.batches.open_batch(request)  # pyright: ignore[reportArgumentType]


class _Counting:
    def __init__(self, waiter: Waiter) -> None:
        self.interrupted = waiter.run_.interrupted
        self.store = self.batches = self
        self.lease_seconds = waiter.run_.store.lease_seconds
        self.open_batch = waiter.look
        self.resources = waiter.run_.resources


def test_a_batch_waits_for_a_slot_as_long_as_a_live_batch_holds_it(store: Store):
    holder = store.batches.open_batch(HELD.request)
    waiter = Waiter(store, WANTED)
    waiter.looked.wait()  # far more often than the lease, 0.01 s, has time for
    write(store, holder)
    waiter.join()

    assert waiter.error is None
    assert [batch.run_id for batch in store.limits.in_flight()] == ["run-2"]


def test_what_is_waited_for_is_told_once_each(store: Store):
    store.limits.set_limit("all", 1, "ada")
    add_model(store, "refunds")
    first = store.batches.open_batch(HELD.request)
    other = Asked(model="refunds", run="run-3", slots=ONE)
    waiter = Waiter(store, WANTED)
    waiter.looked.wait()
    store.limits.set_limit("all", 2, "ada")
    store.batches.open_batch(other.request)
    write(store, first)
    waiter.join()

    assert [wait.why for wait in waiter.told] == ["a slot of model orders, where the limit is 1"]
    assert waiter.told[0].cells == WANTED.request.stretches


def test_a_free_slot_is_taken_without_a_word(store: Store):
    told: list[Delayed] = []
    opened(Opener(store), HELD, told.append)
    assert told == []


def test_a_plan_that_is_paused_ends_the_wait(store: Store):
    keep_plan(store, "p1")
    store.batches.open_batch(HELD.request)
    waiter = Waiter(store, Asked(start=1, end=2, run="run-2", plan="p1", slots=ONE))
    waiter.looked.wait()
    store.queue.control_plan("p1", Control.PAUSED, "ada")
    waiter.join()

    assert isinstance(waiter.error, PlanPausedOrStoppedError)
    assert [batch.run_id for batch in store.limits.in_flight()] == ["run-1"]


def test_an_interrupted_run_waits_no_longer(store: Store):
    store.batches.open_batch(HELD.request)
    waiter = Waiter(store, WANTED)
    waiter.looked.wait()
    waiter.run_.interrupted.set()
    waiter.join()

    assert isinstance(waiter.error, NoSlotError)


def test_cells_of_a_live_run_are_waited_for_as_long_as_a_dead_one_could_hold_them(store: Store):
    store.batches.open_batch(HELD.request)
    waiter = Waiter(store, replace(HELD, run="run-2"))
    waiter.join()

    assert isinstance(waiter.error, CellsClaimedError)
    assert [wait.why for wait in waiter.told] == [
        f"cells that run run-1 is building (batch {HELD.request.batch_id})"
    ]


@pytest.mark.parametrize("what", ["fills", "moves"])
def test_processes_and_threads_together_use_every_slot_and_never_one_more(url: str, what: str):
    _prepare(url)
    processes = [
        _start(url, run, first, first + 29, what, LONG)
        for run, first in (("run-1", 0), ("run-2", 30))
    ]
    assert [process.wait() for process in processes] == [0, 0]

    with Store.open(url, clock=slot_taker.now) as store:
        rows = store.batches.latest()
    assert Counter(row.status for row in rows) == {"committed": 60}
    assert most_at_once(rows) == OVERALL
    for model in MODELS:
        assert most_at_once(row for row in rows if row.model == model) <= PER_MODEL
    assert any(
        most_at_once(row for row in rows if row.model == model) == PER_MODEL for model in MODELS
    )


def test_slots_of_a_killed_process_come_free_and_the_other_goes_on(url: str):
    _prepare(url)
    with Store.open(url, clock=slot_taker.now, lease_seconds=SHORT) as store:
        store.limits.set_limit("all", 1, "ada")
        killed = _start(url, "run-1", 0, 9, "dies", SHORT)
        assert killed.wait() < 0
        (dead,) = store.batches.latest()
        assert dead.status == "running"
        assert _start(url, "run-2", 10, 14, "fills", SHORT).wait() == 0

        done = [row for row in store.batches.latest() if row.status == "committed"]
    assert len(done) == 5


def most_at_once(rows: Iterable[BatchRow]) -> int:
    """How many batches were open at one instant: from claim to end, as the state has it."""
    steps = sorted(
        step for row in rows for step in ((row.started_at, 1), (row.finished_at or NOON, -1))
    )  # at one instant an end comes before a start
    at_once = most = 0
    for _, step in steps:
        at_once += step
        most = max(most, at_once)
    return most


def _prepare(url: str) -> None:
    with Store.open(url, clock=slot_taker.now) as store:
        for model in MODELS:
            add_model(store, model)


def _start(
    url: str, run_id: str, first: int, last: int, what: str, lease: float
) -> subprocess.Popen[bytes]:
    arguments = [url, run_id, str(first), str(last), what, str(lease)]
    module = slot_taker.__name__
    return subprocess.Popen([sys.executable, "-m", module, *arguments], env=dict(os.environ))
