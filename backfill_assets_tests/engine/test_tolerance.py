"""A difference within a column's tolerance is published, and reopens no reader of the column."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import World, on

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph

SUMS, DOUBLED = "web.sums", "web.doubled"
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"
DAYS = (7, 8, 9, 10)
SOURCE = a_source(columns=(Column("ds", "date"), Column("id", "bigint"), Column("v", "double")))
RESTATED = (Restatement(SUMS, "2024-01-07", "2024-01-10"),)
SUM = 0.1 + 0.2 + 0.3
NEAR = 0.3 + 0.2 + 0.1  # summed in another order: 0.6, not 0.6000000000000001
FAR = 0.60001
SAID = "tolerance 1e-09 on v: smaller differences are published but reopen no reader"


def a_world_of(tolerance: float | None) -> Graph:
    """A sum of each day, and what reads it."""
    cadence = Daily(start="2024-01-07")
    sums = a_model(
        SUMS,
        sql=f"SELECT ds, SUM(v) AS v FROM web.events {WHERE} GROUP BY ds",
        columns=(Column("ds", "date"), Column("v", "double", tolerance=tolerance)),
        unique_key=["ds"],
        cadence=cadence,
    )
    doubled = a_model(
        DOUBLED,
        sql=f"SELECT ds, v * 2 AS v FROM {SUMS} {WHERE}",
        columns=(Column("ds", "date"), Column("v", "double")),
        unique_key=["ds"],
        upstreams=[SUMS],
        cadence=cadence,
    )
    return a_graph(sums, doubled, sources=[SOURCE])


GRAPH = a_world_of(1e-9)


def land(world: World, eighth: float) -> None:
    """Let the source hold one sum a day, and another on the 8th."""
    world.land(SOURCE, *((on(n), 1, eighth if n == 8 else SUM) for n in DAYS))


def held(world: World, name: str) -> Any:  # noqa: ANN401
    return world.rows(name, "ds", "v")[1][1]


@pytest.mark.spark
def test_a_difference_is_published_and_reopens_its_readers_only_beyond_the_tolerance(world: World):
    plans = Plans(world)
    land(world, SUM)
    world.fill(GRAPH)
    assert NEAR != SUM
    land(world, NEAR)
    plan = plans.published(GRAPH, restate=RESTATED)
    assert (held(world, SUMS), held(world, DOUBLED)) == (NEAR, SUM * 2)
    assert plans.make(GRAPH).is_empty
    assert [SAID in model.notes for model in plan.models] == [True, False]
    with Store.open(
        f"sqlite:///{world.root / 'again.db'}", clock=world.clock, data_root=str(world.root)
    ) as store:
        rebuild_state(store, GRAPH, read_logs(GRAPH, str(world.root)))
        again = World(world.spark, world.root, store, world.clock, runs=500)
        assert held(again, SUMS) == NEAR
        assert Plans(again).make(GRAPH).is_empty
    land(world, FAR)
    plans.published(GRAPH, restate=RESTATED)
    assert (held(world, SUMS), held(world, DOUBLED)) == (FAR, FAR * 2)


def test_a_change_of_a_tolerance_alone_computes_nothing(world: World):
    plans = Plans(world)
    land(world, SUM)
    world.fill(GRAPH)
    for tolerance in (1e-6, None, 1e-9):
        graph = a_world_of(tolerance)
        plan = plans.make(graph)
        assert not plan.is_empty
        assert all(not model.work for model in plan.models)
        plans.published(graph)
        assert plans.make(graph).is_empty
