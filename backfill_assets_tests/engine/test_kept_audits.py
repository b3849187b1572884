"""Audits that a plan changes are run on the cells that it keeps; nothing is rebuilt."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.errors import RequestError
from backfill_assets.models.audit import accepted_range, row_count_within
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import row
from backfill_assets_tests.state.building import open_promotions

if TYPE_CHECKING:
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World


@pytest.fixture
def plans(world: World) -> Plans:
    world.begin(OLD, *ROWS)  # one event a day, from the 7th to the 10th, that costs its date
    return Plans(world)


def at_most(most: int) -> Graph:
    """The same models, and a new audit of the sums of days."""
    return a_graph(visits(), costs(audits=[accepted_range("total", None, most)]))


def audited(world: World, plan: Any) -> list[tuple[str, bool]]:  # noqa: ANN401
    """What the plan's history says of audits: over which cells, and whether they passed."""
    events = world.store.plans.events(plan.plan_id)
    return [
        (event.detail["cells"], event.detail["passed"])
        for event in events
        if event.event == "audited"
    ]


def test_a_changed_audit_passes_on_published_cells_without_a_rebuild(world: World, plans: Plans):
    graph, head = at_most(10), world.head(COSTS)
    plan = plans.make(graph)
    assert [model.build for model in plan.models] == [Build.POINTER]
    applied = plans.apply(graph, plan)
    assert [(audit.audit, audit.passed) for audit in applied.audited[COSTS]] == [
        ("accepted_range_total", True)
    ]
    plans.promote(graph, plan)
    assert audited(world, plan) == [("2024-01-07..2024-01-10 (4)", True)]
    assert world.head(COSTS) == head
    assert world.pointer(COSTS).fingerprint == plan.models[0].fingerprint


def test_published_cells_that_fail_a_changed_audit_keep_it_from_being_promoted(
    world: World, plans: Plans
):
    graph, before = at_most(8), world.store.environments.pointers(PROD)
    plan = plans.make(graph)
    applied = plans.apply(graph, plan)
    assert [audit.blocks for audit in applied.audited[COSTS]] == [True]
    words = "accepted_range_total.*web.costs.*2024-01-09, 2024-01-10: found 2 .*allowed"
    with pytest.raises(RequestError, match=words):
        plans.promote(graph, plan)
    assert world.store.environments.pointers(PROD) == before
    assert open_promotions(world.store) == []
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.BUILT
    assert audited(world, plan) == [("2024-01-07..2024-01-10 (4)", False)] * 2


def test_cells_that_a_plan_rebuilds_are_audited_in_their_batches_and_only_the_others_once_more(
    world: World, plans: Plans
):
    graph = at_most(9)
    world.land(a_source(), *changed(row(10, 1, 9.0)))
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-10", "2024-01-10"),))
    plans.apply(graph, plan)
    plans.promote(graph, plan)
    assert audited(world, plan) == [("2024-01-07..2024-01-09 (3)", True)]


def test_cells_that_are_published_between_apply_and_promote_are_audited_too(
    world: World, plans: Plans
):
    graph = at_most(10)
    plan = plans.make(graph)
    plans.apply(graph, plan)
    world.clock.now = world.clock.now.replace(day=12)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)
    with pytest.raises(RequestError, match=r"fail its new audits.*2024-01-11"):
        plans.promote(graph, plan)
    assert audited(world, plan) == [("2024-01-07..2024-01-10 (4)", True), ("2024-01-11", False)]


def test_where_nothing_is_protected_a_failing_audit_ends_the_apply(world: World, plans: Plans):
    world.store.environments.save_environment(
        Environment("dev_costs", protected=False, follows=PROD)
    )
    graph, before = at_most(8), world.store.environments.pointers("dev_costs")
    plan = plans.make(graph, "dev_costs")
    with pytest.raises(RequestError, match=r"fail its new audits.*accepted_range_total"):
        plans.apply(graph, plan)
    assert world.store.environments.pointers("dev_costs") == before


@pytest.mark.parametrize("built_by", ["a plan that was given up", "dev"])
@pytest.mark.parametrize("audit", [accepted_range("cost", 0, None), row_count_within(0.1)])
def test_what_a_new_table_holds_already_passes_audits_that_came_since_it_was_built(
    world: World, built_by: str, audit: Audit
):
    plans = Plans(world)
    world.begin(OLD, *ROWS, *(row(n, 2) for n in range(7, 11)))
    loose, strict = refunds(), refunds(audits=[audit])
    if built_by == "dev":
        dev = Environment("dev", protected=False, follows=PROD)
        world.store.environments.save_environment(dev)
        plans.published(loose, "dev")
    else:
        given_up = plans.make(loose)
        plans.apply(loose, given_up)
        abandon_plan(plans.project(loose), given_up)
    published = world.rows(VISITS)
    plan = plans.make(strict)
    (planned,) = plan.models
    assert not planned.cells, "all of them are there"

    plans.apply(strict, plan)

    assert audited(world, plan) == [("2024-01-07..2024-01-10 (4)", False)]
    with pytest.raises(RequestError, match=f"keeps fail its new audits.*{audit.name}"):
        plans.promote(strict, plan)
    assert world.rows(VISITS) == published


def test_what_a_new_table_holds_already_is_published_where_it_passes_the_audits_of_the_plan(
    world: World, plans: Plans
):
    given_up = plans.make(refunds())
    plans.apply(refunds(), given_up)
    abandon_plan(plans.project(refunds()), given_up)
    strict = refunds(audits=[accepted_range("cost", None, 0)])

    plan = plans.published(strict)

    assert audited(world, plan) == [("2024-01-07..2024-01-10 (4)", True)]
    assert sorted(int(cost) for (cost,) in world.rows(VISITS, "cost")) == [-10, -9, -8, -7]


def refunds(**declared: Any) -> Graph:  # noqa: ANN401
    """The first event of each day, as money that goes back."""
    sql = f"SELECT ds, id, CAST(0 - cost AS DECIMAL(18,2)) AS cost FROM {EVENTS} {WHERE} AND id = 1"
    return a_graph(a_model(sql=sql, cadence=CADENCE, **declared))
