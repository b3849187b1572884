from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state.limits import KEEPS_ITS_TURN, NoSlotError
from backfill_assets.state.queue import PlanPausedOrStoppedError
from backfill_assets_tests.state.building import Asked, add_model, write
from backfill_assets_tests.state.queueing import keep_plan

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

ONE, TWO = Slots(overall=1), Slots(overall=2)


def day(number: int, run: str = "long", slots: Slots = ONE, **given: str) -> Asked:
    return Asked(start=number, end=number + 1, run=run, slots=slots, **given)  # pyright: ignore[reportArgumentType]


def test_a_slot_that_comes_free_goes_to_who_waits_and_not_to_who_freed_it(
    store: Store, other: Store, clock: Clock
):
    first = store.batches.open_batch(day(0).request)
    with pytest.raises(NoSlotError):
        other.batches.open_batch(day(5, "daily").request)
    clock.pass_by(1)
    write(store, first)

    with pytest.raises(NoSlotError, match=r"0 batches .* and 1 waiting longer") as no:
        store.batches.open_batch(day(1).request)
    assert (no.value.holders, no.value.ahead) == ((), 1)
    write(other, other.batches.open_batch(day(5, "daily").request))
    store.batches.open_batch(day(1).request)


def test_those_who_wait_are_served_in_the_order_in_which_they_came(store: Store, clock: Clock):
    held = store.batches.open_batch(day(0).request)
    waiting = [day(number, f"run-{number}") for number in (9, 3, 6)]
    for _ in range(2):
        for asked in waiting:
            with pytest.raises(NoSlotError):
                store.batches.open_batch(asked.request)
            clock.pass_by(1)
    write(store, held)

    for at, asked in enumerate(waiting):
        for later in reversed(waiting[at + 1 :]):
            with pytest.raises(NoSlotError):
                store.batches.open_batch(later.request)
        write(store, store.batches.open_batch(asked.request))


def test_as_many_may_pass_as_there_are_slots_for_them_too(store: Store):
    first = store.batches.open_batch(day(0, slots=TWO).request)
    second = store.batches.open_batch(day(1, slots=TWO).request)
    with pytest.raises(NoSlotError):
        store.batches.open_batch(day(5, "daily", TWO).request)
    write(store, first)
    write(store, second)

    store.batches.open_batch(day(2, slots=TWO).request)  # one slot is left for the one who waits
    with pytest.raises(NoSlotError):
        store.batches.open_batch(day(3, slots=TWO).request)
    store.batches.open_batch(day(5, "daily", TWO).request)


def test_who_waits_for_a_models_slot_keeps_nobody_from_another_models(store: Store):
    add_model(store, "refunds")
    slots = Slots(model=1, overall=2)
    store.batches.open_batch(day(0, slots=slots).request)
    with pytest.raises(NoSlotError, match="model orders"):
        store.batches.open_batch(day(1, "run-2", slots).request)

    store.batches.open_batch(day(0, "run-3", slots, model="refunds").request)


def test_who_is_not_heard_of_any_more_has_lost_its_turn(store: Store, clock: Clock):
    held = store.batches.open_batch(day(0).request)
    with pytest.raises(NoSlotError):
        store.batches.open_batch(day(5, "killed").request)
    write(store, held)
    clock.pass_by(KEEPS_ITS_TURN.total_seconds())

    store.batches.open_batch(day(1).request)


def test_who_looks_again_in_time_keeps_its_turn(store: Store, clock: Clock):
    held = store.batches.open_batch(day(0).request)
    for _ in range(3):
        with pytest.raises(NoSlotError):
            store.batches.open_batch(day(5, "daily").request)
        clock.pass_by(KEEPS_ITS_TURN.total_seconds() - 1)
    write(store, held)

    with pytest.raises(NoSlotError):
        store.batches.open_batch(day(1).request)


def test_who_gives_up_for_another_reason_leaves_its_turn_to_the_next(store: Store):
    keep_plan(store, "p1")
    held = store.batches.open_batch(day(0).request)
    with pytest.raises(NoSlotError):
        store.batches.open_batch(day(5, "run-2", plan="p1").request)
    write(store, held)
    store.queue.control_plan("p1", Control.PAUSED, "ada")
    with pytest.raises(PlanPausedOrStoppedError):
        store.batches.open_batch(day(5, "run-2", plan="p1").request)

    store.batches.open_batch(day(1).request)


def test_a_limit_that_is_raised_lets_them_in(store: Store):
    store.batches.open_batch(day(0).request)
    for number in (4, 5):
        with pytest.raises(NoSlotError):
            store.batches.open_batch(day(number, f"run-{number}").request)
    store.limits.set_limit("all", 3, "ada")

    store.batches.open_batch(day(5, "run-5").request)
    store.batches.open_batch(day(4, "run-4").request)
