"""Registered results: which a plan invalidates, and those that have to be computed again before it is promoted."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan, undo_plan
from backfill_assets.engine.review.answers import UnansweredError
from backfill_assets.engine.review.results import (
    changed_since,
    current_results,
    planned_invalid,
    register_result,
)
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Interval, IntervalSet
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import CADENCE, COSTS, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import on, row

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.result import Result
    from backfill_assets_tests.engine.world import World

REPORT = "report of January"
DOUBLED = (
    "SELECT ds, id, CAST(cost * 2 AS DECIMAL(18,2)) AS cost FROM web.events "
    "WHERE ds >= :start_ds AND ds < :end_ds"
)


def days(first: int, last: int) -> IntervalSet:
    model = OLD.model(VISITS)
    return IntervalSet.of(
        [Interval(model.cadence.cell(str(on(first))).start, model.cadence.cell(str(on(last))).end)]
    )


@pytest.fixture
def plans(world: World) -> Plans:
    world.begin(OLD, *ROWS)
    return Plans(world)


def registered(plans: Plans, *span: int, plan: str = "", rerun: bool = True) -> Result:
    wanted = (REPORT, VISITS, days(*span))
    return register_result(plans.project(OLD), PROD, wanted, plan, "signed off", rerun=rerun)


@pytest.fixture
def plan(world: World, plans: Plans) -> Plan:
    """A plan that builds the 8th and the 9th again, of which only the 8th differs."""
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    return plans.make(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-09"),))


def stale(world: World) -> dict[str, bool]:
    found = current_results(world.store, PROD)
    return {result.name: bool(changed_since(world.store, OLD, result)) for result in found}


def test_a_plan_names_the_results_that_it_may_invalidate_before_it_is_built(
    world: World, plans: Plans, plan: Plan
):
    registered(plans, 7, 9)

    (found,) = planned_invalid(world.store, plan)

    assert (found.result.name, found.cells) == (REPORT, days(8, 9))


def test_a_result_that_has_to_be_computed_again_holds_the_promotion_until_it_was(
    world: World, plans: Plans, plan: Plan
):
    registered(plans, 7, 9)
    assert plans.apply(OLD, plan).status is PlanStatus.BUILT
    with pytest.raises(
        UnansweredError, match=r"result 'report of January' rests on web\.visits 2024-01-08 and"
    ) as refused:
        plans.promote(OLD, plan)
    assert "backfill acknowledge" not in str(refused.value), "no consumer is waited for"

    registered(plans, 7, 9, plan=plan.plan_id)
    plans.promote(OLD, plan)

    assert world.rows(COSTS, "ds", "total")[1] == (on(8), 99)
    assert stale(world) == {REPORT: False}
    text = (Path(world.root) / "evidence" / plan.plan_id / "consumers.json").read_text()
    (noted,) = json.loads(text)["results"]
    assert (noted["name"], noted["cells"], noted["computed_again"]) == (
        REPORT, ["2024-01-08"], True,
    )  # fmt: skip
    rollback_plan(plans.project(OLD), plan)
    assert stale(world) == {REPORT: True}


def test_cells_of_a_result_are_named_as_they_were_where_its_model_is_declared_no_more(
    plans: Plans, plan: Plan
):
    registered(plans, 7, 9)
    plans.apply(OLD, plan)

    with pytest.raises(UnansweredError, match=r"rests on web\.visits 2024-01-08 and"):
        plans.promote(a_graph(), plan)


def test_a_result_that_was_computed_again_on_a_plan_has_to_be_before_the_next_one_too(
    world: World, plans: Plans, plan: Plan
):
    registered(plans, 7, 9)
    plans.apply(OLD, plan)
    registered(plans, 7, 9, plan=plan.plan_id, rerun=False)  # the command of the refusal
    plans.promote(OLD, plan)

    world.land(a_source(), *changed(row(8, 1, 98.0)))
    later = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    plans.apply(OLD, later)

    with pytest.raises(UnansweredError, match="has to be computed again"):
        plans.promote(OLD, later)


def test_a_result_that_was_computed_again_on_other_cells_alone_holds_the_promotion(
    world: World, plans: Plans, plan: Plan
):
    registered(plans, 7, 9)
    plans.apply(OLD, plan)
    registered(plans, 9, 9, plan=plan.plan_id)

    with pytest.raises(UnansweredError, match=r"web\.visits 2024-01-08 and has to be computed"):
        plans.promote(OLD, plan)


def test_a_result_is_computed_again_where_its_plan_has_carried_over_other_rows_since(world: World):
    graph, rows = a_graph(a_model(VISITS, late_window=4)), [row(day) for day in range(1, 11)]
    edited = a_graph(a_model(VISITS, sql=DOUBLED, late_window=4))
    world.land(a_source(), *rows)
    world.fill(graph)
    plans = Plans(world)

    def register(plan_id: str = "") -> None:
        wanted = (REPORT, VISITS, days(9, 9))
        register_result(plans.project(edited), PROD, wanted, plan_id, "", rerun=True)

    register()
    plan = plans.make(edited)
    plans.apply(edited, plan)
    register(plan.plan_id)
    world.land(a_source(), *rows, row(9, 2))
    world.clock.now += timedelta(minutes=1)
    assert refresh_late(world.open(graph)).cells

    with pytest.raises(UnansweredError, match=r"web\.visits 2024-01-09 and has to be computed"):
        plans.promote(edited, plan)
    register(plan.plan_id)
    plans.promote(edited, plan)


def test_what_was_computed_on_a_plan_that_was_abandoned_takes_no_results_place(
    world: World, plans: Plans, plan: Plan
):
    kept = registered(plans, 7, 9)
    plans.apply(OLD, plan)
    world.clock.now += timedelta(minutes=1)
    registered(plans, 8, 8, plan=plan.plan_id)
    abandon_plan(plans.project(OLD), plan)

    assert current_results(world.store, PROD) == (kept,)


@pytest.mark.parametrize(("span", "rerun"), [((9, 10), True), ((7, 9), False)])
def test_a_result_whose_cells_come_out_as_they_were_or_that_may_be_outdated_holds_nothing(
    world: World,
    plans: Plans,
    plan: Plan,
    span: tuple[int, int],
    rerun: bool,  # noqa: FBT001 - a parameter of the test
):
    registered(plans, *span, rerun=rerun)
    plans.apply(OLD, plan)
    plans.promote(OLD, plan)

    assert stale(world) == {REPORT: not rerun}


def test_a_result_is_outdated_where_late_data_has_refreshed_its_cells_in_place(world: World):
    graph = a_graph(a_model(VISITS, late_window=4))
    rows = [row(number) for number in range(1, 11)]
    world.land(a_source(), *rows)
    world.fill(graph)
    wanted = (REPORT, VISITS, days(8, 9))
    made = register_result(Plans(world).project(graph), PROD, wanted, "", "signed off", rerun=False)
    world.clock.now += timedelta(minutes=1)
    assert not changed_since(world.store, graph, made)

    world.land(a_source(), *rows, row(9, 2))
    assert refresh_late(world.open(graph)).cells
    world.clock.now += timedelta(minutes=1)
    world.land(a_source(), *rows, row(9, 2), row(10, 2))
    assert refresh_late(world.open(graph)).cells

    assert changed_since(world.store, graph, made) == days(9, 9)


def test_a_result_of_a_model_that_is_removed_is_named_before_and_outdated_afterwards(
    world: World, plans: Plans
):
    less = a_graph(OLD.models[VISITS])
    wanted = (REPORT, COSTS, days(8, 9))
    made = register_result(plans.project(OLD), PROD, wanted, "", "signed off", rerun=False)
    plan = plans.make(less)

    (found,) = planned_invalid(world.store, plan)
    assert (found.result, found.cells) == (made, days(8, 9))
    assert not changed_since(world.store, less, made)

    plans.apply(less, plan)
    plans.promote(less, plan)
    assert changed_since(world.store, less, made) == days(8, 9)


def test_what_a_result_can_not_have_used_is_refused(world: World, plans: Plans, plan: Plan):
    with pytest.raises(RequestError, match=r"prod has no data of web\.visits in 2024-01-11"):
        registered(plans, 9, 11)
    with pytest.raises(RequestError, match="is proposed; expected a built plan"):
        registered(plans, 9, 10, plan=plan.plan_id)
    plans.apply(OLD, plan)
    wanted = (REPORT, VISITS, days(8, 9))
    with pytest.raises(RequestError, match=r"is one of prod, .* one of dev; give --env prod"):
        register_result(plans.project(OLD), "dev", wanted, plan.plan_id, "", rerun=False)
    wanted = (" ", VISITS, days(8, 9))
    with pytest.raises(RequestError, match="a result without a name"):
        register_result(plans.project(OLD), PROD, wanted, "", "", rerun=False)
    registered(plans, 8, 9)
    assert world.store.results.forget(PROD, REPORT) == 1
    assert world.store.results.forget(PROD, REPORT) == 0


@pytest.mark.parametrize("has_own", [False, True], ids=["follows", "has a table of its own"])
def test_a_result_of_another_environment_is_outdated_by_what_is_published_in_the_one_that_it_reads(
    world: World,
    plans: Plans,
    has_own: bool,  # noqa: FBT001
):
    dev = Environment("dev", protected=False, follows=PROD)
    world.store.environments.save_environment(dev)
    if has_own:
        world.land(a_source(), *changed(row(8, 1, 80.0)))
        plans.published(OLD, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
        world.clock.now += timedelta(minutes=1)
    wanted = (REPORT, VISITS, days(7, 10))
    result = register_result(plans.project(OLD), "dev", wanted, "", "signed off", rerun=False)
    assert not changed_since(world.store, OLD, result)

    world.land(a_source(), *changed(row(8, 1, 88.0), row(9, 1, 90.0)))
    plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-09"),))

    expected = days(9, 9) if has_own else days(8, 9)
    assert changed_since(world.store, OLD, result) == expected


def test_a_result_is_outdated_where_its_environment_reads_other_cells_of_the_one_it_follows_again(
    world: World, plans: Plans
):
    doubled = a_graph(a_model(VISITS, sql=DOUBLED, cadence=CADENCE), OLD.models[COSTS])
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.make(doubled, "dev")
    assert plans.apply(doubled, plan).status is PlanStatus.PROMOTED
    made = register_result(
        plans.project(doubled), "dev", (REPORT, VISITS, days(8, 9)), "", "tried", rerun=False
    )
    world.clock.now += timedelta(minutes=1)

    rollback_plan(plans.project(doubled), plan)

    assert changed_since(world.store, doubled, made) == days(8, 9)
    last = world.store.history.moves_of(plan.plan_id)[-1]
    assert (last.model, last.new) == (VISITS, None)
    assert (last.cells, last.changed) == (days(7, 10), days(7, 10))


def test_an_undo_names_no_cell_as_changed_that_the_followed_environment_publishes_with_the_same_rows(
    world: World, plans: Plans
):
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(row(8, 1, 80.5)))
    first = plans.make(OLD, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    assert plans.apply(OLD, first).status is PlanStatus.PROMOTED
    second = plans.make(OLD, "dev", restate=(Restatement(VISITS, "2024-01-07", "2024-01-10"),))
    assert plans.apply(OLD, second).status is PlanStatus.PROMOTED

    undo_plan(plans.project(OLD), second)

    *_, last = (
        move for move in world.store.history.moves_of(second.plan_id) if move.model == VISITS
    )
    assert (last.kind, last.cells) == (PublicationKind.UNDO, days(7, 10))
    assert not last.changed


def test_a_result_in_dev_is_outdated_by_what_prod_takes_back_of_a_table_that_it_has_taken_over(
    world: World, plans: Plans
):
    doubled = a_graph(a_model(VISITS, sql=DOUBLED, cadence=CADENCE), OLD.models[COSTS])
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(doubled, "dev")
    plan = plans.published(doubled)
    world.clock.now += timedelta(minutes=1)
    made = register_result(
        plans.project(doubled), "dev", (REPORT, VISITS, days(8, 9)), "", "tried", rerun=False
    )
    world.clock.now += timedelta(minutes=1)
    assert not changed_since(world.store, doubled, made)

    rollback_plan(plans.project(doubled), plan)

    assert changed_since(world.store, doubled, made) == days(8, 9)


def test_a_promotion_in_dev_names_no_day_that_prod_has_filled_before_it(world: World, plans: Plans):
    world.store.environments.save_environment(Environment("dev", protected=True, follows=PROD))
    late = changed(row(8, 1, 80.5))
    world.land(a_source(), *late)
    plan = plans.make(OLD, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    plans.apply(OLD, plan)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *late, row(11, 1, 11.0))
    world.fill(OLD)

    plans.promote(OLD, plan)

    moves = {move.model: move for move in world.store.history.moves_of(plan.plan_id)}
    assert moves[VISITS].changed == moves[COSTS].changed == days(8, 8)
