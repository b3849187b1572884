from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.snapshots.observation import (
    BASELINE,
    ChangedCells,
    Observation,
    ObservedSource,
    SourceCell,
)
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.snapshots.slots import Slots
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.claims import LostClaimError
from backfill_assets.state.collection import Collectable, VersionNeededError
from backfill_assets.state.limits import NoSlotError
from backfill_assets.state.tables import SLOT_WAITERS
from backfill_assets.state.versions import UnknownVersionError, VersionCollectingError
from backfill_assets_tests.state.building import LEASE, Asked, days, fill, owe, write
from backfill_assets_tests.state.publishing import Trial, cells
from backfill_assets_tests.state.queueing import keep_plan

if TYPE_CHECKING:
    from backfill_assets.snapshots.batch import BatchRequest
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

MONTH = timedelta(days=30)


def _names(store: Store, promise: timedelta = MONTH) -> list[str]:
    return [each.version for each in store.collection.collectable_versions(promise)]


def _abandoned(store: Store) -> None:
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 2)
    store.environments.drop_workspace(trial.plan_id)


def test_the_table_of_an_abandoned_plan_is_collectable(store: Store):
    assert store.collection.collectable_versions(MONTH) == []
    _abandoned(store)
    assert store.collection.collectable_versions(MONTH) == [
        Collectable("orders__v2", "orders", "/data/orders__v2", "p1")
    ]


def test_what_a_way_back_needs_is_kept_for_as_long_as_was_promised(store: Store, clock: Clock):
    fill(store, Asked())
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3)
    trial.promote()

    clock.pass_by(MONTH.total_seconds() - 1)
    assert _names(store) == []
    clock.pass_by(2)
    assert _names(store) == ["orders__v1"]


@pytest.mark.parametrize(("then", "now"), [(60, 1), (1, 60)])
def test_a_way_back_is_kept_for_as_long_as_was_promised_then_or_is_now_if_that_is_longer(
    store: Store, clock: Clock, then: int, now: int
):
    fill(store, Asked())
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3)
    trial.publish(trial.move("orders"), promise=timedelta(days=then))

    clock.pass_by(timedelta(days=60).total_seconds() - 1)
    assert [move.model for move in store.history.moves_to_keep(timedelta(days=now))] == ["orders"]
    assert _names(store, timedelta(days=now)) == []
    clock.pass_by(2)
    assert store.history.moves_to_keep(timedelta(days=now)) == []
    assert _names(store, timedelta(days=now)) == ["orders__v1"]


def test_a_table_that_lies_under_another_is_needed(store: Store, clock: Clock):
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))
    fill(store, Asked(start=0, end=5))
    dev = Trial(store, environment="dev")
    dev.in_place("orders", cells((0, 1)))
    dev.open()
    dev.fill("orders", 0, 1)
    dev.promote()
    plan = Trial(store, "p2")
    plan.new_version("orders")
    plan.open()
    plan.fill("orders", 0, 5)
    plan.promote()
    clock.pass_by(MONTH.total_seconds() + 1)

    assert _names(store) == []
    store.environments.drop_environment("dev")
    assert _names(store) == ["orders__v1", "orders__v1__p1"]


def test_what_a_dropped_environment_had_published_has_no_way_back_to_keep_tables_for(
    store: Store, clock: Clock
):
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))
    keep_plan(store, "p1")
    dev = Trial(store, environment="dev")
    dev.new_version("orders")
    dev.open()
    dev.fill("orders", 0, 3)
    dev.promote()
    clock.pass_by(MONTH.total_seconds() - 1)
    assert _names(store) == []

    store.environments.drop_environment("dev")

    assert store.history.moves_to_keep(MONTH) == []
    assert _names(store) == ["orders__v2"]
    assert store.collection.collectable_versions(MONTH, timedelta(days=1)) == []


def test_a_table_that_somebody_writes_or_promotes_is_needed(store: Store, clock: Clock):
    store.environments.save_environment(Environment("dev", protected=False))
    at = Pointer("dev", "clicks", "p", "clicks__v1", -1)
    store.environments.ensure_pointer(at, "/data/clicks__v1")
    store.batches.open_batch(Asked("clicks", 0, 1, environment="dev").request)
    store.environments.drop_environment("dev")
    assert _names(store) == []
    clock.pass_by(LEASE + 1)
    assert _names(store) == ["clicks__v1"]
    begun = Trial(store).begin("clicks__v1")
    assert _names(store) == []
    store.publications.withdraw_promotion(begun)
    assert _names(store) == ["clicks__v1"]


def test_nobody_may_point_at_a_table_that_is_being_deleted(store: Store):
    _abandoned(store)
    store.collection.mark_collecting("orders__v2", MONTH)

    again = Trial(store, "p2")
    again.new_version("orders")
    with pytest.raises(VersionCollectingError, match="backfill gc"):
        again.open()
    with pytest.raises(VersionCollectingError):
        again.begin("orders__v2")
    wanted = Pointer("dev", "clicks", "p", "orders__v2", -1)
    with pytest.raises(VersionCollectingError):
        store.environments.ensure_pointer(wanted, "/data/orders__v2")
    assert _names(store) == ["orders__v2"]


def test_only_what_nobody_needs_is_marked_and_only_what_is_marked_is_forgotten(store: Store):
    with pytest.raises(VersionNeededError, match="environment 'prod' reads it"):
        store.collection.mark_collecting("orders__v1", MONTH)
    with pytest.raises(UnknownVersionError):
        store.collection.mark_collecting("nothing", MONTH)
    _abandoned(store)
    with pytest.raises(VersionNeededError, match="not marked"):
        store.collection.forget_version("orders__v2")


def test_a_table_that_lay_under_another_is_kept_for_the_way_back_to_that_one(
    store: Store, clock: Clock
):
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))
    fill(store, Asked())
    over = Trial(store, "p1", "dev")
    over.in_place("orders")
    over.open()
    over.promote()
    for plan_id, environment, table in (
        ("p2", "prod", "orders__v2"),
        ("p3", "dev", "orders__v3"),
    ):
        alone = Trial(store, plan_id, environment)
        alone.new_version("orders", table)
        alone.open()
        alone.promote()
        clock.pass_by(1)
        just_left = store.collection.collectable_versions(timedelta(0), timedelta(days=1))
        assert just_left == []
        clock.pass_by(MONTH.total_seconds() - 1)

    clock.pass_by(-1)
    assert _names(store) == []
    clock.pass_by(2)
    assert _names(store) == ["orders__v1", "orders__v1__p1"]


def test_batches_that_died_in_a_table_end_with_it(store: Store, clock: Clock):
    store.environments.save_environment(Environment("dev", protected=False))
    at = Pointer("dev", "clicks", "p", "clicks__v1", -1)
    store.environments.ensure_pointer(at, "/data/clicks__v1")
    dead = store.batches.open_batch(Asked("clicks", 0, 1, environment="dev").request)
    store.environments.drop_environment("dev")
    clock.pass_by(LEASE + 1)
    store.collection.mark_collecting("clicks__v1", MONTH)
    store.collection.forget_version("clicks__v1")

    assert store.batches.get(dead.request.batch_id).status == "abandoned"
    with pytest.raises(LostClaimError):
        store.batches.check_claims(dead.request.batch_id)


def test_a_forgotten_table_may_be_built_anew(store: Store):
    _abandoned(store)
    owe(store, "orders__v2", cells((0, 1)), "wrong")
    store.collection.mark_collecting("orders__v2", MONTH)
    store.collection.forget_version("orders__v2")
    store.collection.forget_version("orders__v2")

    assert store.collection.collectable_versions(MONTH) == []
    assert store.versions.ready_records("orders__v2") == []
    again = Trial(store, "p2")
    again.new_version("orders")
    again.open()
    assert store.views.of(again.workspace).ready("orders") == cells()
    assert store.views.of(again.workspace).owed == {}
    assert [each.plan_id for each in store.batches.latest(model="orders")] == ["p1"]


def test_a_table_that_was_just_left_is_kept_for_its_readers(store: Store, clock: Clock):
    day = timedelta(days=1)
    _abandoned(store)
    assert store.collection.collectable_versions(timedelta(0), day) == []
    with pytest.raises(VersionNeededError, match="readers may still use it"):
        store.collection.mark_collecting("orders__v2", timedelta(0), day)
    clock.pass_by(day.total_seconds() - 1)
    assert store.collection.collectable_versions(timedelta(0), day) == []
    clock.pass_by(2)
    assert [
        table.version for table in store.collection.collectable_versions(timedelta(0), day)
    ] == ["orders__v2"]


def test_the_table_of_a_version_that_was_replaced_is_kept_for_its_readers(
    store: Store, clock: Clock
):
    fill(store, Asked())
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3)
    trial.promote()
    assert store.collection.collectable_versions(timedelta(0), timedelta(days=1)) == []
    clock.pass_by(timedelta(days=1).total_seconds() + 1)
    assert [
        table.version
        for table in store.collection.collectable_versions(timedelta(0), timedelta(days=1))
    ] == ["orders__v1"]


def test_looks_at_sources_go_where_they_are_not_declared_and_nothing_has_read_them(store: Store):
    for name in ("declared", "read", "in_flight", "left"):
        look = ObservedSource(name, f"/lake/{name}", "id", "days", 3)
        seen = ChangedCells((SourceCell(days(0, 1), 5),), BASELINE)
        assert store.sources.observe(Observation(look, None, (seen,), anew=True))
    write(store, store.batches.open_batch(_reading("read", 0)))
    store.batches.open_batch(_reading("in_flight", 5))

    store.collection.forget_remains(["declared"])

    assert {*store.sources.observed()} == {"declared", "read", "in_flight"}
    assert store.sources.source_cells("left") == {}
    assert len(store.sources.source_cells("read")) == 1


def _reading(source: str, day: int) -> BatchRequest:
    pin = InputPin(source, "", f"/lake/{source}", 3)
    return replace(Asked(start=day, end=day + 1).request, source_pins=(pin,))


def test_those_who_wait_for_a_slot_go_once_they_are_dead(store: Store, clock: Clock):
    one = Slots(overall=1)
    store.batches.open_batch(Asked(start=0, end=1, run="long", slots=one).request)
    for day in (3, 6):
        with pytest.raises(NoSlotError):
            store.batches.open_batch(Asked(start=day, end=day + 1, run=f"{day}", slots=one).request)
        clock.pass_by(0.75 * LEASE)
        store.batches.heartbeat("long")

    store.collection.forget_remains([])

    waiters = sa.select(SLOT_WAITERS.c.batch_id)
    left = store._database.read(lambda open_: open_.execute(waiters).scalars().all())
    assert left == [Asked(start=6, end=7, run="6", slots=one).request.batch_id]


def test_limits_of_plans_go_with_the_plans(store: Store):
    for plan_id in ("p1", "p2"):
        keep_plan(store, plan_id)
        store.limits.set_limit(f"plan:{plan_id}", 1, "ann")
    store.limits.set_limit("all", 3, "ann")
    store.plans.set_plan_status("p1", PlanStatus.APPLYING, PlanStatus.ABANDONED)

    store.collection.forget_remains([])

    assert store.limits.by_scope() == {"all": 3, "plan:p2": 1}
