"""A dual run fills both histories for as many days as were asked for, and is promoted afterwards only."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets.engine.plans.strategy_checks import StrategyCheckError
from backfill_assets.engine.review.appointments import appoint
from backfill_assets.engine.review.before_publishing import commands_now
from backfill_assets.engine.review.dual_runs import dual_run, dual_runs
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.orchestration.follow_ups import comparisons_due
from backfill_assets.planning.plan.request import Strategy
from backfill_assets.render.plan_life import dual_run_text
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import row, text

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
DAY = timedelta(days=1)
ROWS = [row(day, number) for day in range(1, 11) for number in range(4)]


def visits(cost: str = "cost", also: str = "", *, volatile: bool = False) -> Graph:
    """One model; the column ``cost`` is an expression, and there may be one column more."""
    sql = (
        f"SELECT ds, id, CAST({cost} AS DECIMAL(18,2)) AS cost{also} FROM {EVENTS} "  # noqa: S608
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )
    columns = (*COLUMNS, Column("twice", "bigint")) if also else COLUMNS
    return a_graph(
        a_model(sql=sql, columns=columns, cadence=Daily(start="2024-01-01"), volatile=volatile)
    )


OLD, NEW = visits(), visits("cost * 2")


@pytest.fixture
def plans(world: World) -> Plans:
    world.begin(OLD, *ROWS)
    return Plans(world)


def beside(plans: Plans, days: int = 3) -> Plan:
    """A plan of the new logic, built, and to be filled beside the old one for so many days."""
    plan = plans.make(NEW, strategies=((VISITS, Strategy.DUAL_RUN),), dual_run_days=days)
    assert plans.apply(NEW, plan).status is PlanStatus.BUILT
    return plan


def a_day_passes(world: World, day: int, rows: int = 4) -> None:
    """Fill the next day of the old history."""
    world.clock.now += DAY
    landed = [row(each, number) for each in range(11, day + 1) for number in range(rows)]
    world.land(a_source(), *ROWS, *landed)
    world.fill(OLD)


def refused(plans: Plans, plan: Plan) -> str:
    with pytest.raises(RequestError) as error:
        plans.promote(NEW, plan)
    return str(error.value)


def test_a_dual_run_is_promoted_after_its_days_and_then_holds_what_both_have_filled(
    world: World, plans: Plans
):
    plan = beside(plans)
    assert "dual run of 3 days" in plan.gates[0]
    for day in (11, 12, 13):
        assert "prod's own cells are authoritative" in refused(plans, plan)
        a_day_passes(world, day)
        applied = plans.apply(NEW, plan)
        assert text(NEW, VISITS, applied.carried[VISITS]) == f"2024-01-{day}"
        assert not applied.refused

    promoted = plans.promote(NEW, plan)

    assert promoted.status is PlanStatus.PROMOTED
    assert text(NEW, VISITS, promoted.carried[VISITS]) == "2024-01-11..2024-01-13 (3)"
    ready = world.store.views.of("prod").ready(VISITS)
    assert text(NEW, VISITS, ready) == "2024-01-01..2024-01-13 (13)"


def test_apply_is_the_next_step_of_a_dual_run_and_after_it_promote(world: World, plans: Plans):
    plan = beside(plans)
    steps = [f"backfill {verb} {plan.plan_id}" for verb in ("diff", "apply", "abandon")]
    assert commands_now(plans.project(NEW), plan) == (*steps,)

    world.clock.now += 3 * DAY
    steps[1] = f"backfill promote {plan.plan_id}"
    assert commands_now(plans.project(NEW), plan) == (*steps,)


def test_each_comparison_tells_what_was_appended_and_that_every_difference_is_explained(
    world: World, plans: Plans
):
    plan = beside(plans)
    a_day_passes(world, 11)
    plans.apply(NEW, plan)

    dual = dual_run(world.store, plan)

    assert dual is not None
    first, second = (event.detail for event in dual.compared)
    assert first["appended"] == {}
    assert second["appended"] == {VISITS: "2024-01-11"}
    assert second["found"][VISITS].startswith(
        "11 cells with a difference, all explained by the change"
    )
    assert dual_run_text(dual).endswith(
        "2 comparisons, in the last one: every difference explained"
    )


def test_the_sensor_compares_each_day_once_it_is_over_and_once_only(world: World, plans: Plans):
    instance = dg.DagsterInstance.ephemeral()

    def due() -> list[str | None]:
        return [each.run_key for each in comparisons_due(instance, world.store, world.clock.now)]

    plan = beside(plans)
    assert due() == []
    a_day_passes(world, 11)
    assert due() == [f"apply:{plan.plan_id}:1:0"]
    plans.apply(NEW, plan)
    assert due() == []
    a_day_passes(world, 12)
    assert due() == [f"apply:{plan.plan_id}:2:0"]
    world.clock.now += 30 * DAY
    assert due() == [f"apply:{plan.plan_id}:3:0"], "the last day, however late"


def test_a_comparison_that_finds_nothing_new_is_no_new_build(world: World, plans: Plans):
    plan = beside(plans)
    plans.apply(NEW, plan)
    plans.apply(NEW, plan)
    told = [event.event for event in world.store.plans.events(plan.plan_id)]
    assert told.count("built") == 1
    assert told.count("compared") == 3


def test_an_unexplained_difference_of_any_day_stops_the_cutover(world: World):
    """The plan adds a column; a cost that is another one in each run is not explained by that."""
    plans = Plans(world)
    world.begin(visits("rand() * 1000", volatile=True), *ROWS)
    more = visits("rand() * 1000", also=", id AS twice", volatile=True)
    plan = plans.make(more, strategies=((VISITS, Strategy.DUAL_RUN),), dual_run_days=1)
    assert "cost differs in 10 cells" in plans.apply(more, plan).refused
    world.clock.now += DAY

    with pytest.raises(StrategyCheckError, match="every difference explained: cost differs in 10"):
        plans.promote(more, plan)
    assert "cost differs" in dual_run_text(dual_runs(world.store)[plan.plan_id])


def test_a_dual_run_is_not_appointed_within_its_days(world: World, plans: Plans):
    plan = beside(plans)
    project = plans.project(NEW)
    with pytest.raises(RequestError, match="dual run until"):
        appoint(project, plan.plan_id, world.clock.now + 2 * DAY, "early")
    assert appoint(project, plan.plan_id, world.clock.now + 4 * DAY, "in time").who == "ana"


def test_days_without_a_dual_run_are_refused(plans: Plans):
    with pytest.raises(RequestError, match="no model has that strategy"):
        plans.make(NEW, dual_run_days=2)
    with pytest.raises(RequestError, match="no number of days"):
        plans.make(NEW, strategies=((VISITS, Strategy.DUAL_RUN),), dual_run_days=-2)
