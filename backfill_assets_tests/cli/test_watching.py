"""When the watching of a plan ends; without any Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli.watching import watch
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.plans.plan_verbs import queue_plan, start_applying
from backfill_assets.engine.project.plan_age import waits_until
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.queue.releasing import ReleaseKind
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.builders import day
from backfill_assets_tests.engine.queue_world import LEASE, QueueWorld
from backfill_assets_tests.engine.test_ready_work import SUMS, VISITS
from backfill_assets_tests.making import plan_made

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.cli.watching import PlanProgress
    from backfill_assets.planning.plan.plan import Plan


class _LookedTwiceError(Exception):
    pass


@pytest.fixture
def world(tmp_path: Path) -> QueueWorld:
    """The last day has failed for good before there is any plan."""
    world = QueueWorld.of(tmp_path, VISITS, SUMS)
    for name in world.graph.order:
        world.fill(name, day(1, 9))
    world.fail("web.visits", day(10))
    return world


@pytest.fixture
def plan(world: QueueWorld) -> Plan:
    request = PlanRequest(environment=PROD, asked_by="ann", reason="fill")
    return plan_made(
        world.store, world.graph, request, clock=lambda: world.now, data_root=world.root
    )


def _watched(world: QueueWorld, plan: Plan) -> PlanProgress:
    def again(_: float) -> None:
        raise _LookedTwiceError

    return watch(world.project(), plan, sleep=again)


def test_it_ends_when_the_queue_will_try_nothing_of_the_plan(world: QueueWorld, plan: Plan):
    queue_plan(world.operation(plan), None)

    assert [offer.kind for offer in world.look().offers] == [ReleaseKind.FINISH]
    assert _watched(world, plan).stuck


def test_it_ends_when_the_last_batch_of_a_stuck_plan_is_one_of_a_dead_process(
    world: QueueWorld, plan: Plan
):
    queue_plan(world.operation(plan), None)
    run = replace(world.run(), plan_id=plan.plan_id)
    world.store.batches.open_batch(batch_request(run, VISITS, IntervalSet.of([day(10)])))
    with pytest.raises(_LookedTwiceError):
        _watched(world, plan)

    world.pass_by(seconds=LEASE + 1)

    assert _watched(world, plan).stuck


def test_it_ends_when_a_plan_is_too_old_to_be_applied(world: QueueWorld, plan: Plan):
    with pytest.raises(_LookedTwiceError):
        _watched(world, plan)

    world.now = plan.expires_at

    assert _watched(world, plan).where == "expired"


def test_it_ends_when_a_plan_at_work_has_waited_for_too_long(world: QueueWorld, plan: Plan):
    start_applying(world.operation(plan))
    world.now = waits_until(world.store, plan)

    assert _watched(world, plan).where == "applying, has waited for too long"


def test_it_goes_on_while_a_command_may_still_try_what_has_failed_before(
    world: QueueWorld, plan: Plan
):
    start_applying(world.operation(plan))

    with pytest.raises(_LookedTwiceError):
        _watched(world, plan)
