from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.snapshots.queued_plan import Control, QueuedPlan
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets.state.plans import UnknownPlanError
from backfill_assets.state.queue import PlanPausedOrStoppedError
from backfill_assets_tests.state.building import NOON, Asked, write
from backfill_assets_tests.state.queueing import keep_plan

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

OVER = (
    PlanStatus.PROMOTED,
    PlanStatus.ABANDONED,
    PlanStatus.ROLLED_BACK,
    PlanStatus.UNDONE,
)
STOPS = (Control.STOPPED, Control.CANCELLED)


def test_a_queued_plan_is_told_with_who_queued_it_and_when(store: Store):
    keep_plan(store, "p1")
    store.queue.queue_plan("p1", "ada", "22:00-06:00 UTC")

    assert store.queue.queued_plans() == (
        QueuedPlan("p1", Control.RUNNING, "22:00-06:00 UTC", "ada", NOON, NOON),
    )
    assert store.queue.control_of("p1") is Control.RUNNING


def test_queueing_again_changes_nothing_but_the_window(store: Store, clock: Clock):
    keep_plan(store, "p1")
    store.queue.queue_plan("p1", "ada", "22:00-06:00 UTC")
    store.queue.control_plan("p1", Control.PAUSED, "ada")
    clock.pass_by(60)
    store.queue.queue_plan("p1", "grace")

    (found,) = store.queue.queued_plans()
    assert (found.off_peak, found.queued_at, found.control) == (None, NOON, Control.PAUSED)


def test_the_queue_is_told_in_the_order_of_queueing_and_those_outside_it_last(
    store: Store, clock: Clock
):
    for plan_id in ("p1", "p2", "p3"):
        keep_plan(store, plan_id)
    store.queue.control_plan("p3", Control.PAUSED, "ada")
    store.queue.queue_plan("p2", "ada")
    clock.pass_by(1)
    store.queue.queue_plan("p1", "ada")

    assert [plan.plan_id for plan in store.queue.queued_plans()] == ["p2", "p1", "p3"]
    assert store.queue.queued_plans()[2].queued_at is None


@pytest.mark.parametrize("status", [PlanStatus.PROPOSED, *OVER])
def test_a_plan_that_has_not_begun_or_is_over_is_not_queued(store: Store, status: PlanStatus):
    keep_plan(store, "p1", status)
    with pytest.raises(RequestError, match="Look at it with `backfill show"):
        store.queue.queue_plan("p1", "ada")
    assert store.queue.queued_plans() == ()


def test_a_plan_that_is_not_there_is_neither_queued_nor_held(store: Store):
    with pytest.raises(UnknownPlanError):
        store.queue.queue_plan("p1", "ada")
    with pytest.raises(UnknownPlanError):
        store.queue.control_plan("p1", Control.PAUSED, "ada")
    assert store.queue.control_of("p1") is Control.RUNNING


@pytest.mark.parametrize("control", [Control.PAUSED, *STOPS])
def test_no_batch_of_a_held_plan_is_opened_and_what_is_in_flight_ends(
    store: Store, control: Control
):
    keep_plan(store, "p1")
    opened = store.batches.open_batch(Asked(start=0, end=1, plan="p1").request)
    store.queue.control_plan("p1", control, "ada")

    with pytest.raises(PlanPausedOrStoppedError, match=r"plan p1 is (paused|stopped)") as held:
        store.batches.open_batch(Asked(start=1, end=2, plan="p1").request)
    assert held.value.control is control
    store.batches.open_batch(Asked(start=2, end=3).request)
    write(store, opened)
    assert store.batches.get(opened.request.batch_id).status == "committed"


@pytest.mark.parametrize("control", [Control.PAUSED, *STOPS])
def test_a_held_plan_that_is_resumed_goes_on(store: Store, control: Control):
    keep_plan(store, "p1")
    store.queue.control_plan("p1", control, "ada")
    store.queue.control_plan("p1", Control.RUNNING, "ada")

    store.batches.open_batch(Asked(plan="p1").request)


@pytest.mark.parametrize(
    ("control", "way"),
    [
        (Control.PAUSED, "`backfill resume p1` continues it"),
        (Control.STOPPED, "`backfill resume p1`, then `backfill apply p1`, continues it"),
        (Control.CANCELLED, "`backfill resume p1`, then `backfill apply p1`, continues it"),
    ],
)
def test_what_continues_a_held_plan_is_named_with_all_that_it_takes(control: Control, way: str):
    assert way in str(PlanPausedOrStoppedError("p1", control))


def test_a_paused_plan_keeps_its_place_and_a_stopped_one_leaves_the_queue(store: Store):
    keep_plan(store, "p1")
    store.queue.queue_plan("p1", "ada", "22:00-06:00 UTC")
    assert store.queue.control_plan("p1", Control.PAUSED, "ada").queued_at == NOON
    assert store.queue.control_plan("p1", Control.STOPPED, "ada").queued_at is None
    with pytest.raises(PlanPausedOrStoppedError):
        store.queue.queue_plan("p1", "ada")

    store.queue.control_plan("p1", Control.RUNNING, "ada")
    assert store.queue.queued_plans()[0].queued_at is None
    assert store.queue.queue_plan("p1", "ada").queued_at == NOON


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        (Control.PAUSED, Control.PAUSED),
        (Control.STOPPED, Control.STOPPED),
        (Control.STOPPED, Control.PAUSED),
        (Control.CANCELLED, Control.CANCELLED),
        (Control.CANCELLED, Control.STOPPED),
        (Control.CANCELLED, Control.PAUSED),
    ],
)
def test_a_plan_is_not_held_twice(store: Store, clock: Clock, found: Control, asked: Control):
    keep_plan(store, "p1")
    before = store.queue.control_plan("p1", found, "ada")
    clock.pass_by(60)
    with pytest.raises(RequestError, match=r"already.*; expected a plan that is not held"):
        store.queue.control_plan("p1", asked, "grace")
    assert store.queue.queued_plans() == (before,)


@pytest.mark.parametrize("found", [Control.PAUSED, Control.STOPPED])
def test_a_held_plan_may_be_held_harder(store: Store, found: Control):
    keep_plan(store, "p1")
    store.queue.control_plan("p1", found, "ada")
    store.queue.control_plan("p1", Control.CANCELLED, "ada")
    assert store.queue.control_of("p1") is Control.CANCELLED


def test_a_plan_that_is_not_held_is_not_resumed(store: Store):
    keep_plan(store, "p1")
    with pytest.raises(RequestError, match="neither paused nor stopped"):
        store.queue.control_plan("p1", Control.RUNNING, "ada")
    assert store.queue.queued_plans() == ()


@pytest.mark.parametrize("control", Control)
@pytest.mark.parametrize("status", OVER)
def test_a_plan_whose_life_is_over_is_not_held(store: Store, status: PlanStatus, control: Control):
    keep_plan(store, "p1", status)
    with pytest.raises(RequestError, match="Look at it with `backfill show"):
        store.queue.control_plan("p1", control, "ada")
    assert store.queue.queued_plans() == ()


def test_what_was_said_of_a_plan_ends_with_its_life(store: Store):
    keep_plan(store, "p1")
    store.queue.queue_plan("p1", "ada")
    store.queue.control_plan("p1", Control.PAUSED, "ada")
    store.plans.set_plan_status("p1", OPEN, PlanStatus.PROMOTED)

    assert store.queue.queued_plans() == ()
    assert store.queue.control_of("p1") is Control.RUNNING
    store.batches.open_batch(Asked(plan="p1").request)


def test_a_plan_is_held_by_the_beginning_of_its_id(store: Store):
    keep_plan(store, "p1a2b")
    assert store.queue.control_plan("p1a", Control.PAUSED, "ada").plan_id == "p1a2b"
    assert store.queue.control_of("p1a2b") is Control.PAUSED
