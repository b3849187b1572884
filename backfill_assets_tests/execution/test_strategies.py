"""What a strategy promises, and what a slice leaves alone, is held before anything is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.execution.strategy_checks import SliceLeakError, StrategyCheckError
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.planning.request import Restatement
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.execution.plans import Plans
from backfill_assets_tests.execution.test_merging import ORDERS, order, orders, source
from backfill_assets_tests.execution.test_plans import MORE, OLD, ROWS, VISITS, changed
from backfill_assets_tests.execution.world import row

if TYPE_CHECKING:
    from backfill_assets_tests.execution.world import World

pytestmark = pytest.mark.spark


def test_an_enrichment_is_published_where_late_rows_explain_what_differs(world: World):
    plans = Plans(world)
    world.land(a_source(), *ROWS)
    world.fill(OLD)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    plans.promote(MORE, plan)
    assert world.store.plan(plan.plan_id).status is PlanStatus.PROMOTED
    assert [int(cost) for _, cost in world.rows(VISITS, "ds", "cost")] == [7, 99, 9, 10]


def test_a_repair_that_would_change_rows_outside_its_slice_is_not_published(world: World):
    plans = Plans(world)
    both = [row(n, id_, float(n)) for n in range(7, 11) for id_ in (1, 2)]
    world.land(a_source(), *both)
    world.fill(OLD)
    world.land(a_source(), *((ds, id_, cost + (ds.day == 8)) for ds, id_, cost in both))
    day = (Restatement(VISITS, "2024-01-08", "2024-01-08"),)
    leaking = plans.make(OLD, restate=day, where="id = 1")
    plans.apply(OLD, leaking)
    with pytest.raises(SliceLeakError, match="id=2"):
        plans.promote(OLD, leaking)


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
