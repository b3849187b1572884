"""A number explained, and cells replayed, on Spark: of hours that share files, and of a Python function."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.engine.review.replaying import Replay
from backfill_assets.intervals import Hourly, Interval, IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import TimeColumns
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.replayed import Verdict
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_explaining import later, told
from backfill_assets_tests.engine.test_kept_rows import (
    COLUMNS as ORDERS_COLUMNS,
    FIRST,
    LEFT,
    ORDERS,
    orders,
)

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

pytestmark = pytest.mark.spark

MODEL = "web.hours"
COLUMNS = (Column("at", "timestamp"), Column("id", "bigint"), Column("weight", "double"))
START = datetime(2024, 1, 10, tzinfo=UTC)
SOURCE = a_source(
    columns=COLUMNS, cadence=Hourly(start="2024-01-10"), times=TimeColumns(event="at")
)


def hours(weight: str = "weight") -> Graph:
    model = a_model(
        MODEL,
        sql=f"SELECT at, id, {weight} AS weight FROM {EVENTS} "  # noqa: S608
        "WHERE at >= :start_ts AND at < :end_ts",
        kind=IncrementalByTimeRange("at"),
        cadence=Hourly(start="2024-01-10", end="2024-01-10"),
        columns=COLUMNS,
        unique_key=["at", "id"],
    )
    return a_graph(model, sources=[SOURCE])


def rows(*extra: tuple[int, float]) -> list[tuple[Any, ...]]:
    """A row of 0.1 in each hour, and more of them."""
    each_hour = [(hour, 0.1) for hour in range(24)]
    return [
        (START + timedelta(hours=hour), number, weight)
        for number, (hour, weight) in enumerate([*each_hour, *extra])
    ]


def test_hours_that_share_files_are_explained_and_replayed(world: World):
    plans, old, new = Plans(world), hours(), hours("weight * 2")
    world.land(SOURCE, *rows())
    world.fill(old)
    later(world)
    world.land(SOURCE, *rows((5, 0.2)))
    late = Restatement(EVENTS, "2024-01-10", "2024-01-10")
    plans.published(old, restate=(late,))
    later(world)
    plan = plans.published(new)
    fifth = IntervalSet.of([Interval(START + timedelta(hours=5), START + timedelta(hours=6))])
    every = IntervalSet.of([Interval(START, START + timedelta(days=1))])

    def parts() -> list[Any]:
        run = world.open(new)
        found = explain_number(run, run.graph.model(MODEL), fifth, "weight", (None, None))
        return told(found)

    def verdicts() -> set[Verdict]:
        run = world.open(new)
        return {each.verdict for each in Replay(run).published(run.graph.model(MODEL), every)}

    assert parts() == [
        ("batch", Decimal("0.1"), ["first build"]),
        ("promote", Decimal("0.2"), [f"late rows {EVENTS}"]),
        ("promote", Decimal("0.3"), [f"logic {MODEL}"]),
    ]
    assert verdicts() == {Verdict.EQUAL}
    later(world)
    rollback_plan(plans.project(new), plan)
    assert parts()[-1] == ("rollback", Decimal("-0.3"), ["rollback"])
    assert verdicts() == {Verdict.EQUAL}


def test_rows_that_were_kept_are_replayed_from_the_table_as_it_stood(world: World):
    graph = orders()
    source = a_source(columns=ORDERS_COLUMNS)
    plans, day = Plans(world), IntervalSet.of([Interval(START - timedelta(days=1), START)])
    world.land(source, *FIRST)
    world.fill(graph)
    world.land(source, *LEFT)
    late = Restatement(EVENTS, "2024-01-09", "2024-01-09")
    run = world.open(graph)
    (first,) = Replay(run).published(run.graph.model(ORDERS), day)
    assert (first.verdict, first.rows) == (Verdict.EQUAL, (2, 2))
    plans.published(graph, restate=(late,))
    run = world.open(graph)
    (second,) = Replay(run).published(run.graph.model(ORDERS), day)
    assert second.verdict is Verdict.IMPOSSIBLE
    assert "keeps rows that its source lost" in second.causes[0]
