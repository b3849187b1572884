"""Planning at scale: what is missing, its batches and what each waits for, without a table or Spark.

`python -m benchmarks.planning`, or as a part of `python -m benchmarks`. Every figure is the median of
a few repetitions in this process; nothing is cached between them.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from backfill_assets.intervals import Cadence, Daily, Hourly, Interval, IntervalSet
from backfill_assets.intervals.required import missing, required
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.column import Column
from backfill_assets.models.content import ChangedAt
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_batches import planned_batches
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView
from benchmarks.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable


MODELS, DAYS, BATCH_SIZE = 500, 3_650, 30
HOURS = 3 * 365 * 24
REPEATS = 5
START = datetime(2015, 1, 1, tzinfo=UTC)
GOAL, GOAL_ONE, GOAL_PLAN = 0.5, 0.05, 10
PEER_ONE = "13.7 s (SQLMesh 0.236.4: one hourly model, 3 years, every second hour missing)"
PEER_DAILY = "2.6 s (SQLMesh 0.236.4: one daily model of 10,000 days)"
COLUMNS = (Column("ds", "date"), Column("id", "bigint"))
_DAY = 86_400
_FIRST = int(START.timestamp())


def measured(repeats: int = REPEATS) -> dict[str, dict[str, float | int | str]]:
    """Measure every case; seconds are the median, memory is what is left at the end, in MB."""
    graph, hourly = chain(), _hourly()
    days = START + timedelta(days=DAYS)
    hours = START + timedelta(hours=HOURS)
    cases: dict[str, Callable[[], tuple[Graph, CellsByModel, datetime]]] = {
        "empty": lambda: (graph, CellsByModel(), days),
        "last day missing": lambda: (graph, _every(graph, _but_last), days),
        "every second day ready": lambda: (graph, _every(graph, _second_days), days),
        "different gaps per model": lambda: (graph, _every(graph, _own_gaps), days),
        "one hourly model, every second hour": lambda: (
            hourly,
            _every(hourly, _second_hours),
            hours,
        ),
    }
    found = {name: _measure(make, repeats) for name, make in cases.items()}
    return found | _whole_plans(graph, days)


def _measure(
    make: Callable[[], tuple[Graph, CellsByModel, datetime]], repeats: int
) -> dict[str, float | int | str]:
    graph, ready, now = make()
    seconds: list[float] = []
    found = (0, 0)
    for _ in range(repeats):
        gc.collect()
        began = perf_counter()
        found = _plan(graph, ready, now)
        seconds.append(perf_counter() - began)
    tracemalloc.start()
    _plan(graph, ready, now)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    goal = GOAL if len(graph.models) > 1 else GOAL_ONE
    return {
        "seconds": round(median(seconds), 4),
        "goal": goal,
        "batches": found[0],
        "waits": found[1],
        "peak MB": round(peak / 1e6, 1),
        "peer": PEER_ONE if len(graph.models) == 1 else PEER_DAILY,
    }


def _whole_plans(graph: Graph, now: datetime) -> dict[str, dict[str, float | int | str]]:
    """Measure `build_plan` from end to end, once: changes, cells, reads, batches and the hash."""
    full = IntervalSet.of([Interval(START, now)])
    cases: dict[str, Callable[[int], IntervalSet]] = {
        "whole plan, nothing to do": lambda _number: full,
        "whole plan, last day missing": _but_last,
        "whole plan, every second day ready": _second_days,
    }
    known = Loaded.of(graph)
    _ = [*known.reads.values()]  # traced before anything is measured
    return {name: _whole_plan(known, _every(graph, ready), now) for name, ready in cases.items()}


def _whole_plan(known: Loaded, ready: CellsByModel, now: datetime) -> dict[str, float | int | str]:
    state = PlanState(view=_view(known, ready), running=known.snapshots)
    request = PlanRequest(environment=PROD)
    gc.collect()
    began = perf_counter()
    plan = build_plan(request, known.graph, state, now, known)
    seconds = perf_counter() - began
    return {
        "seconds": round(seconds, 4),
        "goal": GOAL if plan.is_empty else GOAL_PLAN,
        "batches": sum(len(model.batches) for model in plan.models),
        "waits": sum(len(model.reads) for model in plan.models),
        "peak MB": 0.0,
        "peer": PEER_DAILY,
    }


def _view(known: Loaded, ready: CellsByModel) -> StateView:
    """What prod holds: every stretch of ready cells of one batch, built upstream first."""
    models: dict[str, ModelState] = {}
    for number, (name, cells) in enumerate(ready.items(), start=1):
        snapshot, stamps = known.snapshots[name], ChangedAt(number, {})
        pointer = Pointer(PROD, name, snapshot.fingerprint.id, snapshot.version, 1)
        runs = tuple(ReadyRun(each, number, stamps, f"b{number}") for each in cells)
        models[name] = ModelState(pointer, runs)
    return StateView(Environment(PROD, protected=True), models, counter=len(models))


def _plan(graph: Graph, ready: CellsByModel, now: datetime) -> tuple[int, int]:
    """Missing, batches and the dependency graph, as the planner does it."""
    nothing = IntervalSet.empty()
    cells: dict[str, tuple[IntervalSet, IntervalSet]] = {}
    for name in graph.order:
        cadence = graph.models[name].cadence
        needed = required(cadence, now=now)
        cells[name] = (missing(cadence, needed, ready[name]), nothing)
    plan = planned_batches(graph, cells, dict.fromkeys(cells, BATCH_SIZE))
    waits = sum(len(wait.firsts) for each in plan.values() for wait in each.waits)
    return sum(map(len, plan.values())), waits


def chain() -> Graph:
    """500 daily models: each reads the one before with a lookback of three days, and a source."""
    models = [
        _model(f"web.m{number:03d}", [f"web.m{number - 1:03d}"] if number else [], Daily(START))
        for number in range(MODELS)
    ]
    return build_graph(models, [_source()])


def _hourly() -> Graph:
    return build_graph([_model("web.hours", [], Hourly(START))], [_source()])


def _model(name: str, reads: list[str], cadence: Cadence) -> Model:
    kind = "ts" if cadence.unit.is_subday else "ds"
    bound = f"WHERE ds >= :start_{kind} AND ds < :end_{kind}"
    selects = [f"SELECT ds, id FROM {table} {bound}" for table in ("web.events", *reads)]  # noqa: S608
    return Model(
        name=name,
        query=SqlQuery(" UNION ALL ".join(selects)),
        kind=IncrementalByTimeRange("ds"),
        cadence=cadence,
        upstreams=["web.events", *(Upstream(upstream, lookback=3) for upstream in reads)],
        grain="one row per day and id",
        unique_key=["ds", "id"],
        columns=[Column("ds", "timestamp" if kind == "ts" else "date"), *COLUMNS[1:]],
        owner="team:web",
        batch_size=BATCH_SIZE,
    )


def _source() -> Source:
    return Source(
        name="web.events",
        path="web/events",
        cadence=Daily(START),
        columns=COLUMNS,
        times=TimeColumns(event="ds"),
        owner="team:web",
    )


def _every(graph: Graph, ready: Callable[[int], IntervalSet]) -> CellsByModel:
    return CellsByModel({name: ready(number) for number, name in enumerate(graph.order)})


def _but_last(_number: int) -> IntervalSet:
    return IntervalSet.of([Interval(START, START + timedelta(days=DAYS - 1))])


def _second_days(_number: int) -> IntervalSet:
    return IntervalSet.of_pairs(
        (_FIRST + day * _DAY, _FIRST + (day + 1) * _DAY) for day in range(0, DAYS, 2)
    )


def _own_gaps(number: int) -> IntervalSet:
    """Every few days a gap, of which the place differs from model to model."""
    step = 3 + number % 7
    return IntervalSet.of_pairs(
        (_FIRST + (day + number % step + 1) * _DAY, _FIRST + (day + number % step + step) * _DAY)
        for day in range(0, DAYS, step)
    )


def _second_hours(_number: int) -> IntervalSet:
    return IntervalSet.of_pairs(
        (_FIRST + hour * 3_600, _FIRST + (hour + 1) * 3_600) for hour in range(0, HOURS, 2)
    )


def planning_part() -> Part:
    """Measure it as a part of the benchmark."""
    figures = measured()
    return Part(name="planning", figures=figures, lines=(shown(figures),))


def shown(figures: dict[str, dict[str, float | int | str]]) -> str:
    """Write the figures as lines, each beside its goal and the peer's."""
    lines = [f"planning: {MODELS} models x {DAYS:,} days (missing + batches + what each waits for)"]
    for name, row in figures.items():
        beside = f"peak {row['peak MB']} MB" if row["peak MB"] else "from end to end"
        lines.append(
            f"  {name:<36} {row['seconds']:>7} s (goal {row['goal']})  {row['batches']:>9,} batches  "
            f"{row['waits']:>9,} waits  {beside}"
        )
    lines += [f"  the peer: {PEER_ONE}", f"            {PEER_DAILY}"]
    return "\n".join(lines)


if __name__ == "__main__":
    as_json = "--json" in sys.argv[1:]
    result = measured()
    print(json.dumps(result, indent=2) if as_json else shown(result))  # noqa: T201 - a command
