"""What a strategy promises, and what a slice leaves alone, is held before anything is published."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.plans.strategy_checks import SliceLeakError, StrategyCheckError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import row_count_within
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.change import deriving
from backfill_assets.planning.change.categorize import DeclarationDifference
from backfill_assets.planning.plan.request import Category, Restatement, Strategy
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_merging import ORDERS, order, orders, source
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
from backfill_assets_tests.engine.world import on, row

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World


DOUBLED = a_model(
    sql=f"SELECT ds, id, CAST(cost * 2 AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}",
    cadence=CADENCE,
)


def strategy(plan: Plan) -> Strategy | None:
    return next(model.strategy for model in plan.models if model.model == VISITS)


def test_an_enrichment_promises_equal_columns_also_where_late_rows_explain_what_differs(
    world: World,
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    assert strategy(plan) is Strategy.COLUMN_ENRICHMENT
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    assert "cost differs in 1 cell, 2024-01-08" in plans.apply(MORE, plan).refused
    with pytest.raises(StrategyCheckError, match="cost differs in 1 cell, 2024-01-08"):
        plans.promote(MORE, plan)
    abandon_plan(plans.project(MORE), plan)
    again = plans.published(MORE)
    assert strategy(again) is Strategy.FULL_REBUILD
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 99, 9, 10]


def test_new_columns_and_a_restatement_in_one_plan_are_a_full_rebuild(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    day = (Restatement(VISITS, "2024-01-08", "2024-01-08"),)
    plan = plans.published(MORE, restate=day)
    assert strategy(plan) is Strategy.FULL_REBUILD
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 99, 9, 10]


def test_a_plan_holds_row_counts_against_what_its_environment_reads(world: World):
    """A new version's table is empty: it is held against the cells that the version published."""
    plans = Plans(world)
    old, fewer = (
        a_graph(visits(more, audits=[row_count_within(0.1)]))
        for more in ("", ", CAST(cost * 2 AS DECIMAL(18,2)) AS double")
    )
    both = [row(n, id_, float(n)) for n in range(7, 11) for id_ in (1, 2)]
    world.land(a_source(), *both)
    world.fill(old)
    world.land(a_source(), *(values for values in both if values[:2] != (on(8), 2)))
    for graph, restated in (
        (old, (Restatement(VISITS, "2024-01-08", "2024-01-08"),)),
        (fewer, ()),
    ):
        plan = plans.make(graph, restate=restated)
        applied = plans.apply(graph, plan)
        assert "rows of 2024-01-08 differ by 50.00%" in str(applied.events)
        assert applied.left[VISITS]
        abandon_plan(plans.project(graph), plan)


def test_a_repair_that_would_change_rows_outside_its_slice_is_not_published(world: World):
    plans = Plans(world)
    both = [row(n, id_, float(n)) for n in range(7, 11) for id_ in (1, 2)]
    world.begin(OLD, *both)
    world.land(a_source(), *((ds, id_, cost + (ds.day == 8)) for ds, id_, cost in both))
    day = (Restatement(VISITS, "2024-01-08", "2024-01-08"),)
    leaking = plans.make(OLD, restate=day, where="id = 1")
    plans.apply(OLD, leaking)
    with pytest.raises(SliceLeakError, match="id=2"):
        plans.promote(OLD, leaking)


def test_rows_outside_a_slice_are_looked_for_also_in_cells_that_an_earlier_plan_has_built(
    world: World,
):
    """The second plan builds one cell, and would publish the whole new table."""
    plans = Plans(world)
    both = [row(n, id_, float(n)) for n in range(7, 11) for id_ in (1, 2)]
    world.begin(OLD, *both)
    doubled_early = f"SELECT ds, id, CAST(IF(DAY(ds) = 7, 2, 1) * cost AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}"
    edited = a_graph(a_model(sql=doubled_early, cadence=CADENCE), OLD.models[COSTS])
    abandoned = plans.make(edited)
    plans.apply(edited, abandoned)
    abandon_plan(plans.project(edited), abandoned)

    day = (Restatement(VISITS, "2024-01-08", "2024-01-08"),)
    leaking = plans.make(edited, restate=day, where="id = 1")

    assert {each.model: each.cells for each in leaking.models}[VISITS] == days(8)
    assert "would change 1 row of 'web.visits'" in plans.apply(edited, leaking).refused
    with pytest.raises(SliceLeakError, match="changed ds=2024-01-07, id=2"):
        plans.promote(edited, leaking)


def test_a_repair_into_which_a_neighbours_row_moves_is_not_published(world: World):
    plans = Plans(world)
    graph = orders(IncrementalByUniqueKey("ds", rows_move=True))
    world.land(source(), order(1, 9), order(2, 9), order(3, 10))
    world.fill(graph)
    world.land(source(), order(2, 9), order(1, 10), order(3, 10))
    plan = plans.make(graph, restate=(Restatement(ORDERS, "2024-01-10", "2024-01-10"),))
    assert plans.apply(graph, plan).left == {}
    with pytest.raises(StrategyCheckError, match="outside the plan: not as before"):
        plans.promote(graph, plan)
    assert len(world.rows(ORDERS, "id")) == 3


def test_a_restatement_excuses_no_model_that_it_does_not_reach(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """The edit changes cost, and the verdict on it is wrong on purpose."""
    plans, other = Plans(world), "web.other"
    aside = a_model(other, sql=f"SELECT ds, id, cost FROM web.events {WHERE}", cadence=CADENCE)
    world.land(a_source(), *ROWS)
    world.fill(a_graph(visits(), aside))
    edited = a_graph(DOUBLED, aside)
    nothing = DeclarationDifference(
        Category.BREAKING, "seems harmless", rows=False, columns=frozenset()
    )
    monkeypatch.setattr(deriving, "difference", lambda *_: nothing)
    for restated in (other, VISITS):
        plan = plans.make(edited, restate=(Restatement(restated),), select=("*",))
        assert plans.apply(edited, plan).left == {}
        if restated == other:
            with pytest.raises(StrategyCheckError, match="cost differs in 4 cells"):
                plans.promote(edited, plan)
            abandon_plan(plans.project(edited), plan)
    plans.promote(edited, plan)
    assert [int(cost) for (cost,) in world.rows(VISITS, "cost")] == [14, 16, 18, 20]


COUNTED = a_model(
    COSTS,
    sql=f"SELECT ds, CAST(SUM(cost) AS DECIMAL(18,2)) AS total, COUNT(*) AS n FROM {VISITS} {WHERE} "
    "GROUP BY ds",
    columns=(Column("ds", "date"), Column("total", "decimal(18,2)"), Column("n", "bigint")),
    unique_key=["ds"],
    grain="one row per day",
    upstreams=[VISITS],
    cadence=CADENCE,
)


def test_what_changes_upstream_explains_what_follows_from_it_in_an_edited_reader(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plans.published(a_graph(DOUBLED, COUNTED))
    assert [int(total) for (total,) in world.rows(COSTS, "total")] == [14, 16, 18, 20]


def test_late_rows_of_an_upstream_that_the_plan_brings_in_explain_what_follows_in_an_edited_reader(
    world: World,
):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    world.fill(OLD)  # sees the row, and leaves it to a plan
    edited = a_graph(visits(), COUNTED)
    plan = plans.published(edited)
    strategies = {model.model: model.strategy for model in plan.models}
    assert strategies == {VISITS: Strategy.PARTITION_REPAIR, COSTS: Strategy.FULL_REBUILD}
    assert [int(total) for _, total in world.rows(COSTS, "ds", "total")] == [7, 99, 9, 10]


def test_days_that_a_later_start_takes_away_explain_what_follows_in_an_edited_reader(world: World):
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    later = a_graph(visits(cadence=Daily(start="2024-01-09")), COUNTED)
    plan = plans.published(later)
    assert {model.model: model.strategy for model in plan.models}[COSTS] is Strategy.FULL_REBUILD
    assert [(ds.day, n) for ds, n in world.rows(COSTS, "ds", "n")] == [(9, 1), (10, 1)]
    assert plans.make(later).is_empty


def test_late_rows_of_an_upstream_explain_no_other_day_of_an_edited_reader(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """The edit changes cost, and the verdict on it is wrong on purpose."""
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    world.fill(OLD)
    edited = a_graph(visits(), costs("cost * 2"))
    nothing = DeclarationDifference(
        Category.BREAKING, "seems harmless", rows=False, columns=frozenset()
    )
    monkeypatch.setattr(deriving, "difference", lambda *_: nothing)
    plan = plans.make(edited)
    assert "total differs in 3 cells, 2024-01-07" in plans.apply(edited, plan).refused


def test_late_rows_explain_all_that_follows_in_an_edited_model_that_reads_itself(world: World):
    def running(days: int) -> Graph:
        before = "SELECT total FROM web.sums WHERE ds = DATE_SUB(:start_ds, 1)"
        total = f"CAST(COALESCE(SUM(cost), 0) + COALESCE(({before}), 0) AS DECIMAL(18,2)) AS total"
        sums = a_model(
            "web.sums",
            sql=f"SELECT :start_ds AS ds, {total}, {days} AS days FROM web.events {WHERE}",
            upstreams=["web.events", Upstream("web.sums", lookback=1)],
            columns=(*COUNTED.schema[:2], Column("days", "int")),
            unique_key=["ds"],
            cadence=CADENCE,
            batch_size=1,
        )
        return a_graph(sums)

    plans, old, new = Plans(world), running(1), running(2)
    world.begin(old, *ROWS)
    world.land(a_source(), *ROWS, row(8, 2, 5.0))
    world.fill(old)  # sees the row, and leaves it to a plan

    plan = plans.published(new)

    assert [each.strategy for each in plan.models] == [Strategy.FULL_REBUILD]
    assert [int(total) for _, total in world.rows("web.sums", "ds", "total")] == [7, 20, 29, 39]
