"""A state that was restored from an older backup: nothing is never stale, no promotion is read by half."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch import table_turn
from backfill_assets.engine.plans.plan_verbs import undo_plan
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.stored_plan import PlanEventKind
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_source, days
from backfill_assets_tests.engine.dying import Killed, mortal
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import World, on, row, told

if TYPE_CHECKING:
    from collections.abc import Iterator


def copied(world: World, source: str, target: str) -> None:
    """Copy a state database as a backup would."""
    with (
        closing(sqlite3.connect(world.root / source)) as found,
        closing(sqlite3.connect(world.root / target)) as made,
    ):
        found.backup(made)


@contextmanager
def restored(world: World) -> Iterator[World]:
    """The same folder under the state of the backup."""
    url = f"sqlite:///{world.root / 'backup.db'}"
    with Store.open(url, clock=world.clock, lease_seconds=600, data_root=str(world.root)) as store:
        yield World(world.spark, world.root, store, world.clock, runs=500)


def totals(world: World) -> dict[object, int]:
    return {ds: int(total) for ds, total in world.rows(COSTS, "ds", "total")}


def test_cells_that_a_restored_state_adopts_are_made_stale_by_later_late_data(world: World):
    world.land(a_source(), *ROWS)
    world.fill(OLD, cells=days(7))
    copied(world, "state.db", "backup.db")
    for number in (8, 9, 10):
        world.fill(OLD, cells=days(number))
    with restored(world) as again:
        events = again.fill(OLD)
        assert {name: told(model_events) for name, model_events in events.items()} == {
            VISITS: ["skipped"],
            COSTS: ["skipped"],
        }
        counter = again.store.views.of("prod").counter
        for name in (VISITS, COSTS):
            records = again.store.versions.ready_records(again.pointer(name).version)
            assert max(record.built_at for record in records) <= counter
        assert Plans(again).make(OLD).is_empty
        again.land(a_source(), *changed(row(9, 1, 99.0)))
        assert told(again.fill(OLD)[VISITS]) == ["left stale", "skipped"]
        Plans(again).published(OLD)
        assert totals(again) == {on(n): 99 if n == 9 else n for n in range(7, 11)}


def test_a_promotion_that_a_restored_state_does_not_know_is_never_read_by_half(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    copied(world, "state.db", "backup.db")
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = Plans(world).make(OLD, restate=(Restatement(VISITS),))
    copied(world, "state.db", "backup.db")
    Plans(world).apply(OLD, plan)
    Plans(world).promote(OLD, plan)
    assert totals(world)[on(8)] == 99
    copied(world, "backup.db", "state.db")
    old = {on(n): n for n in range(7, 11)}
    assert totals(world) == old
    with mortal(world) as store, monkeypatch.context() as patch:
        doomed = World(world.spark, world.root, store, world.clock, runs=800)
        patch.setattr(table_turn, "restore", store.die)
        with pytest.raises(Killed):
            doomed.fill(OLD)
    world.clock.pass_lease()
    assert totals(world) == {ds: int(cost) for ds, _, cost in world.rows(VISITS)} == old
    world.clock.now = world.clock.now.replace(day=12)
    world.land(a_source(), *changed(row(8, 1, 99.0)), row(11, 1, 11.0))
    world.fill(OLD, VISITS)
    world.fill(OLD)
    told_of = [
        event
        for event in world.store.plans.events(plan.plan_id)
        if event.event == PlanEventKind.TAKEN_BACK
    ]
    assert {event.detail["model"] for event in told_of} == {VISITS, COSTS}
    seen = {ds: int(cost) for ds, _, cost in world.rows(VISITS)}
    assert totals(world) == seen == {**old, on(11): 11}
    Plans(world).published(OLD)
    assert totals(world) == {**old, on(8): 99, on(11): 11}
    assert Plans(world).make(OLD).is_empty


def test_a_publication_adopts_what_a_restored_state_has_forgotten_upstream_first(world: World):
    """By name `web.costs` comes before `web.visits`, which it reads."""
    plans, today = Plans(world), world.clock.now
    world.clock.now = today.replace(day=9)
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    assert plans.apply(OLD, plan).left == {}
    copied(world, "state.db", "backup.db")
    world.clock.now = today.replace(day=10)
    world.fill(OLD)
    with restored(world) as again:
        Plans(again).promote(OLD, plan)
        assert totals(again) == {on(7): 7, on(8): 99, on(9): 9}
        heads = {name: again.head(name) for name in (VISITS, COSTS)}
        copied(world, "backup.db", "later.db")
        world.clock.now = today
        again.fill(OLD)
        copied(world, "later.db", "backup.db")
    with restored(world) as again:
        undo_plan(Plans(again).project(OLD), plan)
        assert totals(again) == {on(n): n for n in range(7, 11)}
        assert {name: again.head(name) - at for name, at in heads.items()} == {VISITS: 2, COSTS: 2}


def test_what_does_not_count_in_a_table_that_the_state_has_never_seen_is_emptied(world: World):
    world.land(a_source(), *ROWS)
    copied(world, "state.db", "backup.db")
    world.fill(OLD)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    with restored(world) as again:
        again.fill(OLD)
        assert totals(again) == {on(n): 99 if n == 8 else n for n in range(7, 11)}
        assert told(again.fill(OLD)[VISITS]) == ["skipped"]
