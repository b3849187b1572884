"""A number explained, and cells replayed, on Spark: of hours that share files, and of a Python function."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.consumer_checks import ConsumerCheckError
from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.engine.review.known_differences import accept_difference
from backfill_assets.engine.review.replaying import Replay
from backfill_assets.intervals import Hourly, Interval, IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.consumer import CheckQuery, Consumer, Evaluation, Reading
from backfill_assets.models.graph import build_graph
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
    from pathlib import Path

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


def test_a_consumers_check_runs_on_what_a_plan_would_publish_and_stops_it(world: World):
    light = CheckQuery("no hour is heavy", f"SELECT at, weight FROM {MODEL} h WHERE h.weight > 0.3")  # noqa: S608
    broken = CheckQuery("no such column", f"SELECT price FROM {MODEL}")  # noqa: S608

    def read_by(graph: Graph, *checks: CheckQuery) -> Graph:
        board = Consumer(
            name="board", kind="export", owner="team:web", reads=[Reading(MODEL)], checks=checks
        )
        return build_graph(graph.models.values(), graph.sources.values(), [board])

    plans, old, new = Plans(world), hours(), read_by(hours("weight * 4"), light, broken)
    world.land(SOURCE, *rows())
    world.fill(old)
    plan = plans.make(new)

    applied = plans.apply(new, plan)
    checks = {check.check: check for check in world.store.checks.of_plan(plan.plan_id)}
    with pytest.raises(
        ConsumerCheckError, match=r"board: no hour is heavy: 24 rows are wrong, such"
    ):
        plans.promote(new, plan)

    assert "board: no hour is heavy" in applied.refused
    found = checks["board: no hour is heavy"]
    assert (found.model, found.passed, found.stops) == (MODEL, False, True)
    assert found.text.startswith('24 rows are wrong, such as {"at":"2024-01-10T')
    assert '"weight":"***"}' in found.text, "no one has said that weights may be shown"
    assert "price" in checks["board: no such column"].text
    stored, store = world.store.plans.get(plan.plan_id), world.store
    for check in checks.values():
        if not check.passed:
            accept_difference(store, stored, (MODEL, check.check), who="bob", reason="kilograms")
    plans.promote(new, plan)
    assert world.rows(MODEL, "weight")[0] == (0.4,)
    assert plans.published(read_by(hours("weight"), light)).plan_id


EVALUATE = """
import json, sys
import pyarrow.parquet as pq

rows = pq.read_table(sys.argv[-1] + "/web.hours.parquet")
assert rows.column_names == ["weight"], rows.column_names
with open(sys.argv[1], "a") as runs:
    runs.write("run ")
print("evaluating")
print(json.dumps({"hours": rows.num_rows, "weight": sum(rows["weight"].to_pylist())}))
"""


def test_an_evaluation_measures_what_is_published_and_what_would_be_and_stops_a_plan(
    world: World, tmp_path: Path
):
    script, runs = tmp_path / "evaluate.py", tmp_path / "runs"
    script.write_text(EVALUATE)
    command = (sys.executable, str(script), str(runs))
    near, far = Evaluation("weights", command, within=0.5), Evaluation("far", command, within=3)
    broken = Evaluation("broken", (sys.executable, "-c", "raise SystemExit('no model')"))
    agent = Consumer(
        name="agent",
        kind="agent",
        owner="team:web",
        reads=[Reading(MODEL, columns=["weight"])],
        evaluations=[near, far, broken],
    )
    old, edited = hours(), hours("weight * 4")
    new = build_graph(edited.models.values(), edited.sources.values(), [agent])
    plans = Plans(world)
    world.land(SOURCE, *rows())
    world.fill(old)
    plan = plans.make(new)

    applied = plans.apply(new, plan)

    checks = {check.check: check for check in world.store.checks.of_plan(plan.plan_id)}
    stopped, passed, ended = (checks[f"agent: {name}"] for name in ("weights", "far", "broken"))
    assert (stopped.passed, passed.passed, ended.passed) == (False, True, False)
    assert stopped.text == "weight 2.4 before, 9.6 after; not within 50.00%"
    assert passed.text == "hours 24 before, 24 after, weight 2.4 before, 9.6 after"
    assert "exit code 1: no model" in ended.text
    assert "agent: weights" in applied.refused
    assert runs.read_text().split() == ["run"] * 4
    with pytest.raises(ConsumerCheckError):
        plans.promote(new, plan)
    assert runs.read_text().split() == ["run"] * 4, "the same files are not measured again"
