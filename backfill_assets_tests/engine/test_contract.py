"""What a plan is expected to change is held against what it has built, before anything is published."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans import comparing
from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.plans.strategy_checks import StrategyCheckError, UnexpectedChangeError
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.review.evidence import facts_of
from backfill_assets.engine.review.known_differences import accept_difference, known_differences
from backfill_assets.engine.review.parts import made_parts
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.planning.plan.plan_json import plan_json, read_plan
from backfill_assets.planning.plan.request import Restatement, Strategy
from backfill_assets.planning.review.contract import PLANNER
from backfill_assets.render.report.content import Report
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.plan_check import STRATEGY
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source
from backfill_assets_tests.engine.dying import before_call
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    MORE,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

DOUBLED = a_graph(
    a_model(
        sql=f"SELECT ds, id, CAST(cost * 2 AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}",
        cadence=CADENCE,
    ),
    costs(),
)


def proved(plan: Plan, model: str) -> list[str]:
    return [
        each.check for each in plan.contract if (each.model, each.decided_by) == (model, PLANNER)
    ]


def test_the_planner_fills_in_what_it_can_prove(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    nothing = ["no row is added", "no row is removed"]
    more = plans.make(MORE)
    assert proved(more, VISITS) == ["only double differs", *nothing]
    assert proved(more, COSTS) == ["no column differs", *nothing]
    assert proved(plans.make(DOUBLED), VISITS) == ["only cost differs", *nothing]
    day = (Restatement(VISITS, "2024-01-08", "2024-01-08"),)
    assert proved(plans.make(OLD, restate=day), VISITS) == ["only cells 2024-01-08 differ"]
    plans.published(MORE)
    found = world.store.checks.of_plan(more.plan_id)
    assert {each.passed for each in found} == {True}
    assert {each.decided_by for each in found} == {PLANNER, STRATEGY}


def test_what_is_outside_of_the_contract_is_not_published(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    expect = ((VISITS, "cost within 50% a month"), (VISITS, "cells 2024-01-07..2024-01-09"))
    plan = plans.make(DOUBLED, expect=expect, asked_by="ann")
    refused = plans.apply(DOUBLED, plan).refused
    assert "found +100.00% in 2024-01: 34 before, 68 after" in refused
    assert "found 1 other cell, 2024-01-10 first" in refused
    assert f"backfill accept {plan.plan_id} {VISITS} 'sum of cost within 50% a month'" in refused
    with pytest.raises(UnexpectedChangeError):
        plans.promote(DOUBLED, plan)
    assert sorted(int(cost) for (cost,) in world.rows(VISITS, "cost")) == [7, 8, 9, 10]


def test_what_another_run_builds_while_a_promotion_is_under_way_is_checked_too(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def computing(cost: str) -> Graph:
        sql = f"SELECT ds, id, CAST({cost} AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}"
        return a_graph(a_model(sql=sql, cadence=CADENCE, late_window=2))

    def refreshed_and_built_again() -> None:
        world.land(a_source(), *changed(row(10, 1, 100.0)))
        world.fill(old)
        with pytest.raises(UnexpectedChangeError):
            plans.promote(new, plan)

    plans, old = Plans(world), computing("cost")
    new = computing("CASE WHEN cost > 50 THEN cost * 2 ELSE cost END")
    world.begin(old, *ROWS)
    plan = plans.make(new, expect=((VISITS, "cost within 2%"),))
    assert not plans.apply(new, plan).refused
    before_call(world.store.publications, "begin_promotion", refreshed_and_built_again, monkeypatch)

    with pytest.raises(UnexpectedChangeError):
        plans.promote(new, plan)

    assert sorted(int(cost) for (cost,) in world.rows(VISITS, "cost")) == [7, 8, 9, 100]


def test_published_cells_that_the_range_of_a_plan_leaves_out_break_no_rule_where_nothing_is_protected(
    world: World,
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    expect = ((VISITS, "cost within 100%"), (VISITS, "rows changed within 100%"))
    plan = plans.make(DOUBLED, "dev", start="2024-01-09", expect=expect, asked_by="ann")
    assert "no row is removed" in proved(plan, VISITS)

    assert plans.apply(DOUBLED, plan).status is PlanStatus.PROMOTED

    texts = {each.check: each.text for each in world.store.checks.of_plan(plan.plan_id)}
    assert texts["no row is removed"] == "found 0 of 2 rows"
    assert texts["sum of cost within 100%"] == "found +100.00%: 19 before, 38 after"


def test_cells_that_a_new_life_takes_away_are_judged_where_nothing_is_protected_too(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    later = a_graph(visits(cadence=Daily(start="2024-01-09")), costs())
    plan = plans.make(later, "dev", expect=((VISITS, "rows within 10%"),))

    with pytest.raises(UnexpectedChangeError, match="found 2 of 4 rows"):
        plans.apply(later, plan)


def test_a_sum_is_held_against_what_each_group_may_differ_by(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS, row(10, 2, 5.0))
    expect = ((VISITS, "cost within 10% a id, 100% in 2"),)
    plan = plans.make(DOUBLED, expect=expect, asked_by="ann")
    refused = plans.apply(DOUBLED, plan).refused
    assert (
        "sum of cost within 10% a id, 100% in 2: found +100.00% in 1: 34 before, 68 after"
        in refused
    )
    assert "other id" not in refused
    (check,) = (each for each in plan.contract if each.decided_by == "ann")
    assert read_plan(plan_json(plan)).contract[0] == check
    with pytest.raises(UnexpectedChangeError):
        plans.promote(DOUBLED, plan)

    abandon_plan(plans.project(DOUBLED), plan)

    wider = plans.make(DOUBLED, expect=((VISITS, "cost within 100% a id"),), asked_by="ann")
    assert not plans.apply(DOUBLED, wider).refused


def test_nulls_are_counted_in_cells_that_are_published_for_the_first_time_too(world: World):
    plans = Plans(world)
    world.begin(OLD, row(5, 1), row(6, 1), *ROWS)
    nulled = a_graph(
        a_model(
            sql=f"SELECT ds, id, CASE WHEN ds < DATE'2024-01-07' THEN NULL ELSE cost END AS cost "
            f"FROM web.events {WHERE}",
            cadence=Daily(start="2024-01-05", end="2024-01-10"),
        ),
        costs(),
    )
    plan = plans.make(nulled, expect=((VISITS, "cost null within 1%"),), asked_by="ann")

    refused = plans.apply(nulled, plan).refused

    assert "cost NULL in at most 1% of rows: found 2 of 6 rows, 33.33%" in refused


def test_a_group_of_the_text_null_is_another_one_than_that_of_no_value(world: World):
    def named(cost: str) -> Graph:
        sql = (
            f"SELECT ds, id, CAST({cost} AS DECIMAL(18,2)) AS cost, "
            f"CASE WHEN id > 1 THEN 'NULL' END AS channel FROM web.events {WHERE}"
        )
        columns = [*COLUMNS, Column("channel", "string", nullable=True)]
        return a_graph(a_model(sql=sql, columns=columns, cadence=CADENCE))

    plans = Plans(world)
    world.begin(named("cost"), *ROWS, row(10, 2, 5.0))
    doubled = named("CASE WHEN id > 1 THEN cost ELSE cost * 2 END")
    plan = plans.make(doubled, expect=((VISITS, "cost within 10% a channel"),), asked_by="ann")

    refused = plans.apply(doubled, plan).refused

    assert "found +100.00% in NULL: 34 before, 68 after" in refused


def test_what_is_inside_of_it_is_and_its_comparison_is_made_once(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    plans, asked = Plans(world), list[object]()
    compare = comparing.compare
    monkeypatch.setattr(
        comparing, "compare", lambda *given: (asked.append(given), compare(*given))[1]
    )
    world.begin(OLD, *ROWS)
    plan = plans.make(DOUBLED, expect=((VISITS, "only cost"),))
    plans.apply(DOUBLED, plan)
    once = len(asked)
    assert once
    plans.promote(DOUBLED, plan)
    assert len(asked) == once
    assert [int(cost) for (cost,) in world.rows(VISITS, "cost")] == [14, 16, 18, 20]


def test_an_accepted_difference_is_published_and_known(world: World):
    plans, store = Plans(world), world.store
    world.begin(OLD, *ROWS)
    plan = plans.make(DOUBLED, expect=((VISITS, "rows changed within 10%"),))
    plans.apply(DOUBLED, plan)
    stored = store.plans.get(plan.plan_id)
    for reason, check, said in (
        (" ", "rows changed", "without a reason"),
        ("new tax", "only cost", "has passed, so there is nothing to accept"),
        ("new tax", "row", "fits several checks"),
        ("new tax", "clicks", "has no check 'clicks'; its checks are"),
    ):
        with pytest.raises(RequestError, match=said):
            accept_difference(store, stored, (VISITS, check), who="bob", reason=reason)
    with pytest.raises(RequestError, match=r"models with checks: web\.visits"):
        accept_difference(store, stored, ("web.visit", "rows"), who="bob", reason="new tax")
    assert known_differences(store, plan.plan_id) == ()
    accept_difference(store, stored, (VISITS, "rows changed"), who="bob", reason="new tax")
    plans.promote(DOUBLED, plan)
    [known] = known_differences(store, plan.plan_id)
    assert (known.who, known.reason, known.text) == ("bob", "new tax", "found 4 of 4 rows, 100.00%")
    evidence, _ = made_parts(facts_of(InProject(project=plans.project(DOUBLED)), plan.plan_id))
    assert Report(evidence).verdict.startswith("Published. ")
    assert Report(evidence).holds
    assert "at most 10% of rows changed: accepted (found 4" in evidence["release_note.md"].decode()
    with pytest.raises(RequestError, match="is promoted; expected a plan that is built"):
        accept_difference(
            store, store.plans.get(plan.plan_id), (VISITS, "rows changed"), who="bob", reason="x"
        )


def test_an_acceptance_of_other_numbers_is_void_and_says_so(world: World):
    plans, store = Plans(world), world.store
    world.begin(OLD, *ROWS)
    plan = plans.make(DOUBLED, expect=((VISITS, "rows changed within 10%"),))
    plans.apply(DOUBLED, plan)
    stored = store.plans.get(plan.plan_id)
    accept_difference(store, stored, (VISITS, "rows changed"), who="bob", reason="new tax")
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)
    with pytest.raises(UnexpectedChangeError, match=r"no longer accepted by bob: new tax") as found:
        plans.promote(DOUBLED, plan)
    assert (
        "found 5 of 5 rows, 100.00%; no longer accepted by bob: new tax (then: found 4 of 4 rows"
        in (str(found.value))
    )
    accept_difference(store, stored, (VISITS, "rows changed"), who="bob", reason="new tax, 5 days")
    plans.promote(DOUBLED, plan)
    assert [known.reason for known in known_differences(store, plan.plan_id)] == ["new tax, 5 days"]


def test_what_a_strategy_finds_can_be_accepted_too(world: World):
    """Such as a dual run with differences that are documented and agreed on."""
    plans, store = Plans(world), world.store
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE, strategies=((VISITS, Strategy.COLUMN_ENRICHMENT),))
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    assert "cost differs in 1 cell" in plans.apply(MORE, plan).refused
    stored = store.plans.get(plan.plan_id)
    accept_difference(store, stored, (VISITS, "all else equal"), who="bob", reason="late row")
    plans.apply(MORE, plan)
    world.land(a_source(), *changed(row(8, 1, 98.0)))
    assert [each.check for each in known_differences(store, plan.plan_id)] == ["all else equal"]
    plans.promote(MORE, plan)
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 99, 9, 10]


def test_a_failed_strategy_check_is_told_before_the_contract(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE, expect=((VISITS, "only nothing"),))
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plans.apply(MORE, plan)
    with pytest.raises(StrategyCheckError, match="cost differs in 1 cell"):
        plans.promote(MORE, plan)
    stopping = [each.check for each in world.store.checks.of_plan(plan.plan_id) if each.stops]
    assert stopping == ["all else equal", "no column differs"]


def test_an_expectation_of_an_unknown_model_says_which_was_meant(world: World):
    world.begin(OLD, *ROWS)
    with pytest.raises(RequestError, match=r"did you mean .web\.visits."):
        Plans(world).make(DOUBLED, expect=(("web.visit", "only cost"),))
