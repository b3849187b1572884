"""Plans beside a source that lets cells wait: days that have not come yet keep no plan from being published."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals import Whole
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full
from backfill_assets.planning.plan.request import Restatement
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, ROWS, VISITS, changed, costs, visits
from backfill_assets_tests.engine.world import row, text

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

SOURCE = a_source(when_empty="wait")
OLD = a_graph(visits(), costs(), sources=[SOURCE])
MORE = a_graph(visits(", CAST(cost * 2 AS DECIMAL(18,2)) AS double"), costs(), sources=[SOURCE])


@pytest.fixture
def plans(world: World) -> Plans:
    """A world whose next two days are due, and have not come."""
    world.land(SOURCE, *ROWS)
    world.fill(OLD)
    world.clock.now += timedelta(days=2)
    return Plans(world)


def cells(graph: Graph, plan: Plan) -> dict[str, str]:
    return {planned.model: text(graph, planned.model, planned.cells) for planned in plan.models}


def notes(plan: Plan, model: str) -> tuple[str, ...]:
    found = plan.model(model)
    return () if found is None else found.notes


def test_a_restatement_leaves_out_days_that_wait_for_rows_and_is_published(
    world: World, plans: Plans
):
    world.land(SOURCE, *changed(row(8, 1, 80.0)))

    plan = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))

    assert cells(OLD, plan) == {VISITS: "2024-01-08", COSTS: "2024-01-08"}
    assert notes(plan, VISITS) == (
        "2 cells left out: they read rows of web.events that have not come",
    )
    assert [int(cost) for _, cost in world.rows(COSTS, "ds", "total")] == [7, 80, 9, 10]


def test_a_new_table_leaves_them_out_and_the_next_run_fills_them(world: World, plans: Plans):
    plan = plans.published(MORE)

    assert cells(MORE, plan)[VISITS] == "2024-01-07..2024-01-10 (4)"
    world.land(SOURCE, *ROWS, row(11, 1, 11.0), row(12, 1, 12.0))
    world.fill(MORE)
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [
        14,
        16,
        18,
        20,
        22,
        24,
    ]


def test_a_full_model_that_is_published_keeps_what_its_new_table_reads_in_the_plan(
    world: World, plans: Plans
):
    def graph(sql: str) -> Graph:
        total = a_model(
            "web.total",
            sql=sql,
            kind=Full(),
            cadence=Whole(),
            upstreams=[VISITS],
            columns=(Column("n", "bigint"),),
            unique_key=["n"],
        )
        return a_graph(visits(), total, sources=[SOURCE])

    counted = graph("SELECT COUNT(*) AS n FROM web.visits")
    world.land(SOURCE, *ROWS, row(11, 1, 11.0), row(12, 1, 12.0))
    world.fill(counted)
    assert world.rows("web.total", "n") == [(6,)]
    world.clock.now += timedelta(days=1)
    doubled = graph("SELECT COUNT(*) * 2 AS n FROM web.visits")

    plan = plans.make(doubled)

    assert cells(doubled, plan) == {VISITS: "2024-01-13", "web.total": "whole"}
    assert VISITS in plans.apply(doubled, plan).left
    assert world.rows("web.total", "n") == [(6,)]
    world.land(SOURCE, *ROWS, *(row(n, 1, float(n)) for n in (11, 12, 13)))
    assert plans.apply(doubled, plan).left == {}
    plans.promote(doubled, plan)
    assert world.rows("web.total", "n") == [(14,)]
