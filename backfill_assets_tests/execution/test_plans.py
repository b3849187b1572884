"""Plans end to end on real tables: built where nobody reads, published at once."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source
from backfill_assets_tests.execution.plans import Plans
from backfill_assets_tests.execution.world import row

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.execution.world import World

pytestmark = pytest.mark.spark
VISITS, COSTS = "web.visits", "web.costs"
CADENCE = Daily(start="2024-01-07")
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def visits(extra: str = "", **declared: Any) -> Any:  # noqa: ANN401
    """Every event; with `extra`, one more column."""
    columns = (*COLUMNS, Column("double", "decimal(18,2)")) if extra else COLUMNS
    sql = f"SELECT ds, id, cost{extra} FROM web.events {WHERE}"
    return a_model(sql=sql, cadence=CADENCE, columns=columns, **declared)


def costs(column: str = "cost", **declared: Any) -> Any:  # noqa: ANN401
    """The sum of a day."""
    sql = f"SELECT ds, CAST(SUM({column}) AS DECIMAL(18,2)) AS total FROM {VISITS} {WHERE} GROUP BY ds"
    columns = (Column("ds", "date"), Column("total", "decimal(18,2)"))
    given: dict[str, Any] = {"columns": columns, "unique_key": ["ds"], "upstreams": [VISITS]}
    return a_model(COSTS, sql=sql, cadence=CADENCE, grain="one row per day", **given, **declared)


OLD: Graph = a_graph(visits(), costs())
MORE: Graph = a_graph(visits(", CAST(cost * 2 AS DECIMAL(18,2)) AS double"), costs())
ROWS = [row(n, 1, float(n)) for n in range(7, 11)]


def test_an_additive_column_is_built_apart_and_published_at_once(world: World, plans: Plans):
    world.land(a_source(), *ROWS)
    world.fill(OLD)
    before = {name: world.pointer(name) for name in (VISITS, COSTS)}
    plan = plans.make(MORE)
    assert plan.model(COSTS) is None or not plan.model(COSTS).cells
    applied = plans.apply(MORE, plan)
    assert applied.status is PlanStatus.BUILT
    assert {name: world.pointer(name) for name in (VISITS, COSTS)} == before
    plans.promote(MORE, plan)
    assert world.pointer(VISITS).version != before[VISITS].version
    assert world.pointer(COSTS).version == before[COSTS].version
    assert [double for _, double in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 20]
    assert world.store.plan(plan.plan_id).status is PlanStatus.PROMOTED
    assert world.open(MORE).changed == ()
    assert plans.make(MORE).is_empty
