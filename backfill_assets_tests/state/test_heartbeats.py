from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state import publications
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.limits import KEEPS_ITS_TURN, NoSlotError
from backfill_assets.state.locks import PlanLeasedError, TableLockedError
from backfill_assets_tests.state.building import LEASE, Asked, add_model, days, version_of, write
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

HOURS = 3 * 3600
TABLE = version_of("orders")


def set_back(clock: Clock) -> None:
    clock.pass_by(-HOURS)


def test_cells_of_one_who_died_before_the_clock_was_set_back_are_free_after_a_lease(
    store: Store, other: Store, clock: Clock
):
    dead = store.batches.open_batch(Asked(run="run-1").request)
    store.locks.take_commit_lock(TABLE, dead.request.batch_id)
    set_back(clock)
    other.batches.heartbeat("run-2")
    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(run="run-2").request)

    clock.pass_by(LEASE + 1)
    living = other.batches.open_batch(Asked(run="run-2").request)
    assert other.locks.take_commit_lock(TABLE, living.request.batch_id).taken_over
    assert store.batches.get(dead.request.batch_id).status == "abandoned"


def test_one_who_lives_through_it_keeps_its_cells(store: Store, other: Store, clock: Clock):
    store.batches.open_batch(Asked(run="run-1").request)
    set_back(clock)
    for _ in range(4):
        clock.pass_by(LEASE / 2)
        other.batches.heartbeat("run-2")
        store.batches.heartbeat("run-1")
    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(run="run-2").request)


def test_the_lease_of_a_plan_lapses_though_nobody_beats(store: Store, other: Store, clock: Clock):
    store.locks.take_lease("launch b1", "run-1")
    set_back(clock)
    with pytest.raises(PlanLeasedError):
        other.locks.take_lease("launch b1", "run-2")
    clock.pass_by(LEASE + 1)
    other.locks.take_lease("launch b1", "run-2")


def test_a_promotion_is_begun_again_after_a_lease(store: Store, clock: Clock):
    trial = Trial(store)
    trial.begin(TABLE, holder="boss")
    set_back(clock)
    with pytest.raises(TableLockedError):
        trial.begin(TABLE, holder="heir")
    clock.pass_by(LEASE + 1)
    assert trial.begin(TABLE, holder="heir").holder == "heir"


def test_clocks_that_differ_by_less_than_a_lease_change_nothing(
    store: Store, other: Store, clock: Clock
):
    store.locks.take_lease("launch b1", "run-1")
    clock.pass_by(1 - LEASE)
    other.batches.heartbeat("run-2")
    clock.pass_by(LEASE)
    with pytest.raises(PlanLeasedError):
        other.locks.take_lease("launch b1", "run-2")


def test_who_waited_for_a_slot_and_died_keeps_it_from_nobody_for_hours(
    store: Store, other: Store, clock: Clock
):
    slots = Slots(overall=1)
    held = store.batches.open_batch(Asked(run="run-1", slots=slots).request)
    with pytest.raises(NoSlotError):
        store.batches.open_batch(Asked(start=5, end=6, run="dead", slots=slots).request)
    write(store, held)
    set_back(clock)
    other.batches.heartbeat("run-2")
    clock.pass_by(KEEPS_ITS_TURN.total_seconds() + 1)

    other.batches.open_batch(Asked(start=7, end=8, run="run-2", slots=slots).request)


def _waits(store: Store, clock: Clock, patch: pytest.MonkeyPatch) -> None:
    """Let each transaction of a store wait for nearly a lease before it has the database."""
    real: Any = store._database.write

    def write(work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
        clock.pass_by(LEASE - 1)
        return real(work, *given)

    patch.setattr(store._database, "write", write)


def test_a_wait_for_the_database_ages_neither_claim_nor_lock_nor_intent(
    store: Store, other: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    add_model(store, "items")
    add_model(store, "revenue")
    opened = store.batches.open_batch(Asked(run="run-1").request)
    _waits(store, clock, monkeypatch)
    intent = Trial(store).begin(version_of("items"), holder="run-1")
    clock.pass_by(LEASE - 2)
    with pytest.raises(TableLockedError):
        other.locks.take_commit_lock(version_of("items"), "run-2")
    store.publications.note_promotion(intent, {})
    clock.pass_by(LEASE - 2)
    with pytest.raises(TableLockedError):
        other.locks.take_commit_lock(version_of("items"), "run-2")
    store.locks.take_commit_lock(version_of("revenue"), "run-1")
    clock.pass_by(LEASE - 2)
    with pytest.raises(TableLockedError):
        other.locks.take_commit_lock(version_of("revenue"), "run-2")
    store.locks.take_lease("launch b1", "run-1")
    clock.pass_by(LEASE - 2)
    with pytest.raises(PlanLeasedError):
        other.locks.take_lease("launch b1", "run-2")
    store.batches.heartbeat("run-1")
    clock.pass_by(LEASE - 2)
    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(run="run-2").request)
    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(8, 9)]))
    other.batches.heartbeat("run-1")
    clock.pass_by(LEASE - 2)
    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(start=8, end=9, run="run-2").request)


def test_what_lives_when_a_long_publication_begins_lives_when_it_ends(
    store: Store, other: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    add_model(store, "revenue")
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3)
    dead = store.batches.open_batch(Asked("revenue", 5, 6, run="dead").request)
    clock.pass_by(LEASE + 1)
    store.batches.open_batch(Asked("revenue", 0, 3, run="alive").request)
    real = publications.published

    def long(*given: Any) -> Any:  # noqa: ANN401
        clock.pass_by(3 * LEASE)
        return real(*given)

    monkeypatch.setattr(publications, "published", long)
    trial.publish(trial.move("orders"))

    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked("revenue", 0, 3, run="next").request)
    other.batches.open_batch(Asked("revenue", 5, 6, run="next").request)
    assert store.batches.get(dead.request.batch_id).status == "abandoned"
