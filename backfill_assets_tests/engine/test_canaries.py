"""Canaries are built, audited and compared before the other cells of a plan."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import pytest

from backfill_assets.cli.comparing import pairs
from backfill_assets.cli.operating import Operating
from backfill_assets.engine.plans import stage_run
from backfill_assets.engine.plans.building import built_in
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import queue_plan
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.settings import Settings
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.person import verified_person
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_graph, a_model
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import row, text
from backfill_assets_tests.signing import quick_gate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
TEN = Daily(start="2024-01-01", end="2024-01-10")
TWO = "2024-01-01, 2024-01-10"


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def visits(times: int = 1, **declared: object) -> Model:
    sql = (
        f"SELECT ds, id, CAST(cost * {times} AS DECIMAL(18,2)) AS cost FROM {EVENTS} "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )
    return a_model(sql=sql, columns=COLUMNS, **{"cadence": TEN, **declared})


def begun(world: World) -> None:
    world.begin(a_graph(visits()), *(row(day) for day in range(1, 11)))


def built(world: World, plan: Plan) -> str:
    return text(a_graph(visits()), VISITS, built_in(world.store, plan)[VISITS])


def test_the_first_apply_builds_the_canaries_and_the_next_one_the_rest(world: World, plans: Plans):
    begun(world)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, canary=True)

    first = plans.apply(changed, plan)

    assert built(world, plan) == TWO
    assert first.canaries == plan.canaries
    assert first.status is PlanStatus.APPLYING
    assert plans.apply(changed, plan).status is PlanStatus.BUILT
    assert built(world, plan) == "2024-01-01..2024-01-10 (10)"
    assert not plans.apply(changed, plan).canaries


def test_canaries_that_were_never_compared_since_their_process_died_are_compared_first(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    begun(world)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, canary=True)
    with monkeypatch.context() as patched:
        patched.setattr(stage_run, "check_canaries", dying)
        with pytest.raises(KeyboardInterrupt):
            plans.apply(changed, plan)
    assert built(world, plan) == TWO
    with pytest.raises(RequestError, match="canaries"):
        queue_plan(Operation(project=plans.project(changed), plan=plan))

    assert plans.apply(changed, plan).canaries == plan.canaries

    assert built(world, plan) == TWO
    (compared,) = told(world, plan)
    assert any("in 2 cells" in each for each in compared["checked"])
    assert plans.apply(changed, plan).status is PlanStatus.BUILT


def dying(*_: object) -> Never:
    raise KeyboardInterrupt


def test_the_cell_with_the_most_published_rows_is_a_canary(world: World, plans: Plans):
    world.begin(a_graph(visits()), *(row(day) for day in range(1, 11)), row(6, 2))

    plan = plans.make(a_graph(visits(times=2)), canary=True)

    named = text(a_graph(visits()), VISITS, plan.canaries[VISITS])
    assert named == "2024-01-01, 2024-01-06, 2024-01-10"


def test_a_plan_whose_canaries_alone_are_built_is_not_promoted(world: World, plans: Plans):
    begun(world)
    before = world.rows(VISITS)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, canary=True)
    plans.apply(changed, plan)

    with pytest.raises(RequestError):
        plans.promote(changed, plan)

    assert world.rows(VISITS) == before


def goes_on(world: World) -> Plans:
    """Plans under a policy that lets them go on after their canaries."""
    gate = quick_gate('[[environments]]\nname = "prod"\ncanaries = "go on"\n')
    return Plans(world, given={"gate": lambda: gate})


def test_a_policy_lets_a_plan_go_on_whose_canaries_are_as_it_expects(world: World):
    begun(world)
    changed, plans = a_graph(visits(times=2)), goes_on(world)
    plan = plans.make(changed, canary=True)

    applied = plans.apply(changed, plan)

    assert (applied.status, applied.canaries) == (PlanStatus.BUILT, {})
    assert built(world, plan) == "2024-01-01..2024-01-10 (10)"
    (compared,) = told(world, plan)
    assert compared["goes_on"]
    assert any(
        "nothing that the change does not explain differs in 2 cells" in each
        for each in compared["checked"]
    )


@pytest.mark.parametrize("lets_go_on", [True, False])
def test_nothing_else_is_built_after_a_canary_that_fails_its_audit(world: World, lets_go_on: bool):  # noqa: FBT001
    begun(world)
    changed, plans = (
        a_graph(visits(times=-1, audits=[accepted_range("cost", 0, None)])),
        goes_on(world) if lets_go_on else Plans(world),
    )
    plan = plans.make(changed, canary=True)

    tried = plans.apply(changed, plan)

    assert len(tried.failed) == 2
    assert not built_in(world.store, plan)
    assert not told(world, plan)


@pytest.mark.parametrize("lets_go_on", [True, False])
def test_canaries_that_break_the_contract_stop_the_plan_and_say_so(world: World, lets_go_on: bool):  # noqa: FBT001
    begun(world)
    changed, plans = a_graph(visits(times=2)), goes_on(world) if lets_go_on else Plans(world)
    plan = plans.make(changed, canary=True, expect=((VISITS, "cost within 5%"),))

    tried = plans.apply(changed, plan)

    assert built(world, plan) == TWO
    assert "would change more than its contract expects" in tried.refused
    assert not told(world, plan)[0]["goes_on"]
    assert not world.store.checks.of_plan(plan.plan_id), "they are about the whole plan"


def told(world: World, plan: Plan) -> list[Mapping[str, Any]]:
    events = world.store.plans.events(plan.plan_id)
    return [event.detail for event in events if event.event == "canaries compared"]


def test_an_unprotected_environment_is_not_published_with_its_canaries(world: World, plans: Plans):
    begun(world)
    changed = a_graph(visits(times=2))
    world.store.environments.save_environment(
        Environment("dev_costs", protected=False, follows=PROD)
    )
    plan = plans.make(changed, "dev_costs", canary=True)

    assert plans.apply(changed, plan).status is PlanStatus.APPLYING
    assert plans.apply(changed, plan).status is PlanStatus.PROMOTED


def test_the_queue_takes_a_plan_once_its_canaries_are_built(world: World, plans: Plans):
    begun(world)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, canary=True)
    op = Operation(project=plans.project(changed), plan=plan)

    with pytest.raises(RequestError, match="canaries"):
        queue_plan(op)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROPOSED
    plans.apply(changed, plan)
    queue_plan(op)

    assert [queued.plan_id for queued in world.store.queue.queued_plans()] == [plan.plan_id]


def test_only_what_is_built_is_compared(world: World, plans: Plans):
    begun(world)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, canary=True)
    at = Operating(project=plans.project(changed), settings=Settings(), who=verified_person("ana"))

    plans.apply(changed, plan)
    _, _, (pair,) = pairs(at, [plan.plan_id])
    assert pair.cells == plan.canaries[VISITS]

    plans.apply(changed, plan)
    _, _, (pair,) = pairs(at, [plan.plan_id])
    assert pair.cells == plan.models[0].cells
