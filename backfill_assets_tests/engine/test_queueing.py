"""Plans in the queue, plans that are held, limits and Spark settings, on real tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import abandon_plan, queue_plan
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import Committed, Waiting
from backfill_assets.engine.project.opening import open_run
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.intervals.zones import UnknownZoneError
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.queue.off_peak import InvalidOffPeakError, read_off_peak
from backfill_assets.snapshots.environment import PROD, workspace_name
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.queue import PlanPausedOrStoppedError
from backfill_assets.warehouse.rows.inputs import compute
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import ended, row

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.queued_plan import QueuedPlan
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
CADENCE = Daily(start="2024-01-07")
GRAPH = a_graph(a_model(cadence=CADENCE, batch_size=1, batch_concurrency=2))
ROWS = [row(n, 1, float(n)) for n in range(7, 11)]
SHUFFLE = "spark.sql.shuffle.partitions"
NIGHT = "22:00-06:00 Europe/Berlin"


@pytest.fixture
def plans(world: World) -> Plans:
    """Four days are published, and one row of the source is corrected since."""
    world.begin(GRAPH, *ROWS)
    world.land(a_source(), *ROWS[:3], row(10, 1, 99.0))
    return Plans(world)


def made(plans: Plans, **asked: Any) -> Plan:  # noqa: ANN401
    return plans.make(GRAPH, restate=(Restatement(VISITS),), **asked)


def operation(plans: Plans, plan: Plan) -> Operation:
    return Operation(project=plans.project(GRAPH), plan=plan)


def queued(plans: Plans, plan: Plan, off_peak: str | None = None) -> QueuedPlan:
    return queue_plan(operation(plans, plan), off_peak)


def everything(world: World, plan: Plan) -> tuple[object, ...]:
    store = world.store
    names = tuple(environment.name for environment in store.environments.by_name())
    status = store.plans.get(plan.plan_id).status
    return names, status, store.queue.queued_plans(), store.plans.events(plan.plan_id)


def test_a_queued_plan_is_at_work_in_its_workspace_and_apply_does_what_is_left(
    world: World, plans: Plans
):
    plan = made(plans)
    found = queued(plans, plan, " 22:00-06:00  Europe/Berlin")

    assert (found.off_peak, found.set_by, found.control) == (NIGHT, "ana", Control.RUNNING)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.APPLYING
    assert workspace_name(plan.plan_id) in [
        environment.name for environment in world.store.environments.by_name()
    ]
    assert [event.event for event in world.store.plans.events(plan.plan_id)][-2:] == [
        "applying",
        "queued",
    ]
    assert plans.apply(GRAPH, plan).status is PlanStatus.BUILT
    plans.promote(GRAPH, plan)
    assert [float(cost) for (cost,) in world.rows(VISITS, "cost")] == [7, 8, 9, 99]
    assert world.store.queue.queued_plans() == ()


def test_queueing_twice_changes_the_window_alone(world: World, plans: Plans):
    plan = made(plans)
    first = queued(plans, plan, NIGHT)
    again = queued(plans, plan)

    assert (again.off_peak, again.queued_at) == (None, first.queued_at)
    assert len(world.store.queue.queued_plans()) == 1


@pytest.mark.parametrize(
    ("window", "error"),
    [("tonight", InvalidOffPeakError), ("22:00-06:00 Mars/Base", UnknownZoneError)],
)
def test_a_window_that_cannot_be_read_queues_nothing(
    world: World, plans: Plans, window: str, error: type[Exception]
):
    plan = made(plans)
    before = everything(world, plan)
    with pytest.raises(error):
        queued(plans, plan, window)
    assert everything(world, plan) == before


def test_a_plan_that_is_over_is_not_queued(world: World, plans: Plans):
    promoted = made(plans)
    plans.apply(GRAPH, promoted)
    plans.promote(GRAPH, promoted)
    abandoned = made(plans, reason="once more")
    abandon_plan(plans.project(GRAPH), abandoned)

    for plan in (promoted, abandoned):
        before = everything(world, plan)
        with pytest.raises(RequestError, match="already, nothing was written; make a new"):
            queued(plans, plan)
        assert everything(world, plan) == before


def test_a_plan_that_is_built_is_not_queued(world: World, plans: Plans):
    plan = made(plans)
    plans.apply(GRAPH, plan)

    with pytest.raises(RequestError, match=r"is built already.*`backfill promote"):
        queue_plan(Operation(project=plans.project(GRAPH), plan=plan))

    assert world.store.queue.queued_plans() == ()


def test_a_plan_that_was_edited_or_stopped_is_not_queued(world: World, plans: Plans):
    plan = made(plans)
    with pytest.raises(RequestError, match=r"Nothing was written\. A plan can't be edited"):
        queued(plans, replace(plan, notes=("edited",)))
    world.store.queue.control_plan(plan.plan_id, Control.STOPPED, "ana")
    before = everything(world, plan)
    with pytest.raises(PlanPausedOrStoppedError):
        queued(plans, plan)
    assert everything(world, plan) == before


@pytest.mark.parametrize("control", [Control.PAUSED, Control.STOPPED])
def test_applying_a_held_plan_ends_cleanly_says_so_and_goes_on_when_it_is_resumed(
    world: World, plans: Plans, control: Control
):
    plan = made(plans)
    world.store.queue.control_plan(plan.plan_id, control, "ana")
    held = plans.apply(GRAPH, plan)

    assert (held.status, held.failed) == (PlanStatus.APPLYING, ())
    waiting = ended(held.events[VISITS], Waiting)
    assert {event.waits_for for event in waiting} == {
        f"plan {plan.plan_id}, which is {control.words}"
    }
    assert sum(len(event.cells) for event in waiting) >= 1
    assert not ended(held.events[VISITS], Committed)
    resumed = f"`backfill resume {plan.plan_id}`, then `backfill apply {plan.plan_id}` builds"
    with pytest.raises(RequestError, match=resumed):
        plans.promote(GRAPH, plan)

    world.store.queue.control_plan(plan.plan_id, Control.RUNNING, "ana")
    assert plans.apply(GRAPH, plan).status is PlanStatus.BUILT


def test_what_a_plan_has_done_when_it_is_paused_stays_done(world: World, plans: Plans):
    plan = made(plans)

    def pause(event: object) -> None:
        if isinstance(event, Committed) and not world.store.queue.control_of(plan.plan_id).holds:
            world.store.queue.control_plan(plan.plan_id, Control.PAUSED, "ana")

    held = plans.apply(GRAPH, plan, listener=pause)
    done = ended(held.events[VISITS], Committed)
    assert 1 <= len(done) < 4
    assert held.left
    assert ended(held.events[VISITS], Waiting)

    world.store.queue.control_plan(plan.plan_id, Control.RUNNING, "ana")
    rest = plans.apply(GRAPH, plan)
    assert rest.status is PlanStatus.BUILT
    assert len(ended(rest.events[VISITS], Committed)) == 4 - len(done)


def test_what_is_built_of_a_paused_plan_may_be_published(world: World, plans: Plans):
    plan = made(plans)
    assert plans.apply(GRAPH, plan).status is PlanStatus.BUILT
    world.store.queue.control_plan(plan.plan_id, Control.PAUSED, "ana")
    plans.promote(GRAPH, plan)
    assert [float(cost) for (cost,) in world.rows(VISITS, "cost")] == [7, 8, 9, 99]


def test_a_plans_limit_holds_for_its_batches(world: World, plans: Plans):
    plan = made(plans)
    world.store.limits.set_limit(f"plan:{plan.plan_id}", 1, "ana")
    seen: list[int] = []

    def look(_: object) -> None:
        seen.append(len(world.store.limits.in_flight()))

    assert plans.apply(GRAPH, plan, listener=look).status is PlanStatus.BUILT
    rows = [batch for batch in world.store.batches.latest() if batch.plan_id == plan.plan_id]
    assert len(rows) == 4
    assert max(seen) <= 1


@pytest.mark.spark
def test_a_batch_runs_with_the_settings_of_its_model_and_of_its_plan(world: World):
    world.land(a_source(), *ROWS)
    graph = a_graph(
        a_model(
            cadence=CADENCE,
            spark={SHUFFLE: 3, "spark.sql.adaptive.enabled": False},
            spark_off_peak={SHUFFLE: 5},
        )
    )
    found: list[tuple[str, str]] = []

    def rows_from(session: Any, *given: Any) -> Any:  # noqa: ANN401
        found.append((session.conf.get(SHUFFLE), session.conf.get("spark.sql.adaptive.enabled")))
        return compute(session, *given)

    with world.doing(rows=rows_from):
        world.fill(graph)
    assert found == [("3", "false")]
    (done,) = world.store.batches.latest()
    assert done.resources == {SHUFFLE: "3", "spark.sql.adaptive.enabled": "false"}
    # What the run's own session has is as it was: other batches have nothing of it.
    assert world.spark.conf.get(SHUFFLE) == "2"

    plans = Plans(world)
    plan = plans.make(graph, restate=(Restatement(VISITS),), spark=((SHUFFLE, "7"),))
    assert plans.apply(graph, plan).status is PlanStatus.BUILT
    assert world.store.batches.latest()[0].resources == {
        SHUFFLE: "7",
        "spark.sql.adaptive.enabled": "false",
    }


def test_off_peak_settings_count_in_off_peak_hours(world: World):
    world.land(a_source(), *ROWS)
    graph = a_graph(a_model(cadence=CADENCE, spark={SHUFFLE: 3}, spark_off_peak={SHUFFLE: 5}))
    night = BatchPolicy(off_peak=read_off_peak("22:00-06:00 UTC"))
    used: list[dict[str, str]] = []
    for hour in (3, 12):
        world.clock.now = datetime(2024, 1, 11, hour, tzinfo=UTC)
        used.append(open_run(world.project(graph, batch_policy=night), PROD).resources(VISITS))
    assert used == [{SHUFFLE: "5"}, {SHUFFLE: "3"}]


def test_a_limit_over_everything_holds_inside_a_run(world: World):
    world.land(a_source(EVENTS), *ROWS)
    world.store.limits.set_limit("all", 1, "ana")
    in_flight: list[int] = []

    def rows_from(*given: Any) -> Any:  # noqa: ANN401
        in_flight.append(len(world.store.limits.in_flight()))
        return compute(*given)

    with world.doing(rows=rows_from):
        events = world.fill(GRAPH)[VISITS]
    assert len(ended(events, Committed)) == 4
    assert in_flight == [1, 1, 1, 1]
