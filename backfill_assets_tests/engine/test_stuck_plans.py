"""When nothing of a plan can be built any more before somebody changes the code or an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from backfill_assets.engine.automatic.serving import finish
from backfill_assets.engine.automatic.stuck import stuck_cells
from backfill_assets.engine.plans.plan_verbs import queue_plan
from backfill_assets.models.source import WhenEmpty
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.queue.releasing import ReleaseKind
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.stored_plan import PlanEventKind
from backfill_assets_tests.builders import a_graph, a_source, day, days
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.engine.test_looked_again import land
from backfill_assets_tests.engine.test_ready_work import SUMS, VISITS
from backfill_assets_tests.making import plan_made

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.planning.plan.plan import Plan


@pytest.fixture
def world(tmp_path: Path) -> QueueWorld:
    found = QueueWorld.of(tmp_path, VISITS, SUMS)
    for name in ("web.visits", "web.sums"):
        found.fill(name, day(1, 10))
    return found


def stuck(world: QueueWorld, plan: Plan) -> bool:
    return bool(stuck_cells(world.project(), plan))


def test_a_plan_is_stuck_when_all_that_is_left_has_failed_for_good_or_reads_it(world: QueueWorld):
    plan = world.queued("web.visits", 3, 5)
    assert not stuck(world, plan)

    world.fail("web.visits", day(3), plan=plan)
    assert not stuck(world, plan)

    world.fill("web.visits", day(5), rows=12, plan=plan)
    assert not stuck(world, plan)

    world.fill("web.sums", day(5), rows=12, plan=plan)
    assert stuck(world, plan)


def test_a_queued_plan_that_is_stuck_is_finished_once_and_again_after_another_batch_of_it(
    world: QueueWorld,
):
    plan = world.queued("web.visits", 3)
    for times in (1, 2):
        world.pass_by(minutes=1)
        world.fail("web.visits", day(3), plan=plan)
        [offer] = world.look().offers
        assert (offer.kind, offer.plan_id) == (ReleaseKind.FINISH, plan.plan_id)

        done = finish(world.project(run_id=f"finish-{times}"), plan)

        assert done.left == {"web.visits": days(3)}
        records = world.store.evidence.of_plan(plan.plan_id)
        assert [(record.ended, record.written) for record in records] == [("stopped", True)] * times
        assert records[-1].why == "cells are left to build of web.visits: web.visits: no"
        told = [event.event for event in world.store.plans.events(plan.plan_id)]
        assert told.count(PlanEventKind.INCOMPLETE) == times
        assert world.look().offers == ()


def test_a_plan_that_is_built_is_not_stuck(world: QueueWorld):
    plan = world.queued("web.visits", 3)
    for name in ("web.visits", "web.sums"):
        world.fill(name, day(3), rows=12, plan=plan)

    assert not stuck(world, plan)


@pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.CANCELLED])
def test_what_comes_again_by_itself_keeps_a_plan_from_being_stuck(
    world: QueueWorld, kind: FailureKind
):
    plan = world.queued("web.visits", 3)
    world.fail("web.visits", day(3), kind, plan=plan)
    assert not stuck(world, plan)

    world.pass_by(minutes=3)
    assert not stuck(world, plan)


def test_a_batch_at_work_keeps_a_plan_from_being_stuck(world: QueueWorld):
    plan = world.queued("web.visits", 3, 5)
    world.fail("web.visits", day(3), plan=plan)
    world.open("web.visits", day(5), plan=plan)

    assert not stuck(world, plan)


def test_what_is_at_work_beside_the_cells_of_a_plan_keeps_it_from_no_end(tmp_path: Path):
    world = QueueWorld.of(tmp_path, VISITS, SUMS)
    for name in ("web.visits", "web.sums"):
        world.fill(name, day(1, 8))
    fills = PlanRequest(environment=PROD, asked_by="ann", reason="fill", end="2024-01-09")
    plan = plan_made(world.store, world.graph, fills, clock=lambda: world.now, data_root=world.root)
    assert {model.model: model.cells for model in plan.models} == {
        "web.visits": days(9),
        "web.sums": days(9),
    }
    queue_plan(world.operation(plan), None)
    world.fill("web.visits", day(9))
    world.fail("web.sums", day(9))

    world.open("web.visits", day(10))

    assert stuck(world, plan)
    assert [offer.kind for offer in world.look().offers if offer.plan_id] == [ReleaseKind.FINISH]


def test_cells_that_wait_for_rows_keep_a_plan_from_being_stuck(tmp_path: Path):
    graph = a_graph(VISITS, SUMS, sources=[a_source(when_empty=WhenEmpty.WAIT)])
    world = QueueWorld(tmp_path, graph)
    land(world, *range(1, 11))
    for name in graph.order:
        world.fill(name, day(1, 8))
    fills = PlanRequest(environment=PROD, asked_by="ann", reason="fill")
    plan = plan_made(world.store, graph, fills, clock=lambda: world.now, data_root=world.root)
    assert {model.model: model.cells for model in plan.models}["web.visits"] == days(9, 10)
    queue_plan(world.operation(plan), None)
    world.fail("web.visits", day(9))
    DeltaTable(str(world.root / a_source().path)).delete("id = 10")
    land(world)

    assert not stuck(world, plan)  # the rows of the tenth are gone, and it waits

    land(world, 10)
    for name in graph.order:
        world.fill(name, day(10))
    assert stuck(world, plan)
