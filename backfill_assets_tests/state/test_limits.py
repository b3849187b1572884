from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.limits import NoSlotError
from backfill_assets.state.plans import UnknownPlanError
from backfill_assets_tests.state.building import LEASE, NOON, Asked, add_model, days, write
from backfill_assets_tests.state.queueing import keep_plan

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

ONE = Slots(model=1)


def test_a_model_has_no_more_batches_in_flight_than_it_declares_over_all_runs(
    store: Store, other: Store
):
    first = store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    asked = Asked(start=3, end=5, run="run-2", slots=ONE).request

    with pytest.raises(NoSlotError, match=r"1 batch of model orders in flight.*run-1") as no:
        other.batches.open_batch(asked)

    assert (no.value.scope, no.value.limit) == ("model:orders", 1)
    assert [batch.batch_id for batch in no.value.holders] == [first.request.batch_id]
    write(store, first)
    other.batches.open_batch(asked)


def test_a_batch_that_found_no_slot_holds_nothing_and_draws_no_number(store: Store, other: Store):
    first = store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    with pytest.raises(NoSlotError):
        other.batches.open_batch(Asked(start=3, end=5, run="run-2", slots=ONE).request)

    assert [batch.batch_id for batch in store.batches.latest()] == [first.request.batch_id]
    assert store.views.of("prod").claimed == {"orders": IntervalSet.of([days(0, 3)])}
    third = store.batches.open_batch(Asked(start=3, end=5, run="run-3").request)
    assert third.built_at == first.built_at + 1


def test_other_models_count_in_the_overall_limit_only(store: Store):
    add_model(store, "refunds")
    store.batches.open_batch(Asked(start=0, end=3, slots=Slots(1, 2)).request)
    store.batches.open_batch(Asked(model="refunds", slots=Slots(1, 2)).request)

    with pytest.raises(NoSlotError, match="2 batches of everything") as no:
        store.batches.open_batch(Asked(start=3, end=4, run="run-2", slots=Slots(5, 2)).request)
    assert no.value.scope == "all"


def test_batches_of_a_plan_have_a_limit_of_their_own(store: Store):
    keep_plan(store, "p1")
    store.limits.set_limit("plan:p1", 1, "ada")
    first = store.batches.open_batch(Asked(start=0, end=1, plan="p1").request)

    with pytest.raises(NoSlotError) as no:
        store.batches.open_batch(Asked(start=1, end=2, plan="p1").request)
    assert no.value.scope == "plan:p1"
    store.batches.open_batch(Asked(start=2, end=3).request)
    assert [batch.plan_id for batch in store.limits.in_flight()] == ["p1", None]
    write(store, first)
    store.batches.open_batch(Asked(start=1, end=2, plan="p1").request)


def test_a_limit_that_is_set_wins_over_the_declared_one_both_ways(store: Store):
    store.batches.open_batch(Asked(start=0, end=1, slots=ONE).request)
    second = Asked(start=1, end=2, slots=Slots(1, 1)).request

    store.limits.set_limit("model:orders", 2, "ada")
    with pytest.raises(NoSlotError, match="everything"):
        store.batches.open_batch(second)
    store.limits.set_limit("all", 2, "ada")
    store.batches.open_batch(second)

    store.limits.set_limit("model:orders", 1, "ada")
    with pytest.raises(NoSlotError, match="model orders"):
        store.batches.open_batch(Asked(start=2, end=3, slots=Slots(9, 9)).request)


def test_limits_are_told_and_taken_away(store: Store):
    keep_plan(store, "p1a2b")
    store.limits.set_limit("all", 3, "ada")
    store.limits.set_limit("plan:p1a", 2, "ada")
    store.limits.set_limit("all", 4, "ada")
    assert store.limits.by_scope() == {"all": 4, "plan:p1a2b": 2}

    store.limits.set_limit("all", None, "ada")
    store.limits.set_limit("model:orders", None, "ada")
    assert store.limits.by_scope() == {"plan:p1a2b": 2}


@pytest.mark.parametrize("slots", [0, -1])
def test_a_limit_below_one_is_refused_and_changes_nothing(store: Store, slots: int):
    store.limits.set_limit("all", 3, "ada")
    with pytest.raises(RequestError, match="expected 1 or more"):
        store.limits.set_limit("all", slots, "ada")
    assert store.limits.by_scope() == {"all": 3}


@pytest.mark.parametrize("scope", ["", "model:", "plan:", "everything", "pool:x"])
def test_a_limit_of_nothing_that_can_be_limited_is_refused(store: Store, scope: str):
    with pytest.raises(RequestError, match="has no limit; expected 'all',"):
        store.limits.set_limit(scope, 1, "ada")
    assert store.limits.by_scope() == {}


def test_a_limit_of_a_plan_that_is_not_there_is_refused(store: Store):
    with pytest.raises(UnknownPlanError):
        store.limits.set_limit("plan:p9", 1, "ada")
    assert store.limits.by_scope() == {}


def test_slots_of_a_dead_process_come_free_with_its_lease(store: Store, other: Store, clock: Clock):
    store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    asked = Asked(start=3, end=5, run="run-2", slots=ONE).request
    clock.pass_by(LEASE - 1)
    with pytest.raises(NoSlotError):
        other.batches.open_batch(asked)

    clock.pass_by(1)
    assert store.limits.in_flight() == ()
    other.batches.open_batch(asked)
    assert [batch.run_id for batch in store.limits.in_flight()] == ["run-2"]


def test_a_heartbeat_keeps_a_slot(store: Store, other: Store, clock: Clock):
    store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    clock.pass_by(LEASE - 1)
    store.batches.heartbeat("run-1")
    clock.pass_by(LEASE - 1)

    with pytest.raises(NoSlotError):
        other.batches.open_batch(Asked(start=3, end=5, run="run-2", slots=ONE).request)


def test_a_failed_batch_gives_its_slot_back(store: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    store.batches.fail_batch(opened.request.batch_id, error="boom", audits=(), finished_at=NOON)

    assert store.limits.in_flight() == ()
    store.batches.open_batch(Asked(start=3, end=5, slots=ONE).request)


def test_the_attempt_that_a_batch_of_its_own_run_takes_over_does_not_stand_in_its_way(store: Store):
    store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    store.batches.open_batch(Asked(start=1, end=5, slots=ONE).request)

    assert [batch.stretches.span() for batch in store.limits.in_flight()] == [days(1, 5)]


def test_a_batch_tried_again_needs_no_second_slot(store: Store):
    for attempt in (1, 2):
        store.batches.open_batch(Asked(attempt=attempt, slots=Slots(1, 1)).request)
    assert len(store.limits.in_flight()) == 1


def test_cells_that_rows_move_into_take_no_slot(store: Store):
    two = Slots(model=2)
    opened = store.batches.open_batch(Asked(start=0, end=3, slots=two).request)
    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(7, 8), days(10, 11)]))

    assert [batch.stretches.span() for batch in store.limits.in_flight()] == [days(0, 3)]
    store.batches.open_batch(Asked(start=3, end=5, slots=two).request)


def test_a_batch_in_flight_gets_more_cells_though_every_slot_is_taken(store: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    store.limits.set_limit("all", 1, "ada")
    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(7, 8)]))


def test_whose_cells_are_held_is_said_before_whose_slots(store: Store, other: Store):
    store.batches.open_batch(Asked(start=0, end=3, slots=ONE).request)
    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(start=0, end=3, run="run-2", slots=ONE).request)


def test_what_is_in_flight_is_told_with_its_plan_and_run(store: Store):
    keep_plan(store, "p1")
    store.batches.open_batch(Asked(start=0, end=3, plan="p1").request)

    (found,) = store.limits.in_flight()
    assert (found.model, found.version, found.plan_id, found.run_id, found.since) == (
        "orders", "orders__v1", "p1", "run-1", NOON,
    )  # fmt: skip
