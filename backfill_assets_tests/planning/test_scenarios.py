"""Scenarios that can be read without Python: given, request, plan. One file each in `scenarios/`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from backfill_assets.intervals import Daily, Hourly, IntervalSet, Monthly, Weekly, Whole
from backfill_assets.intervals.parse_range import parse_interval
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.column import Column
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Reopens, Upstream, own_cells
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan import ModelPlan, Plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import Category, PlanRequest, Restatement
from backfill_assets.render.plan_words import batches_text
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, SourceState, StateView
from backfill_assets_tests.builders import (
    COLUMNS,
    EVENTS,
    a_graph,
    a_model,
    a_pointer,
    a_source,
    columns_on,
    day,
    stamps,
)

FOLDER = Path(__file__).parent / "scenarios"
CADENCES = {"daily": Daily, "hourly": Hourly, "weekly": Weekly, "monthly": Monthly}
START = "2024-01-01"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_scenario_gives_its_plan(file: Path):
    scenario = yaml.safe_load(file.read_text(encoding="utf-8"))
    running, loaded = _graphs(scenario["given"])
    request = _request(scenario.get("request") or {})
    state = _state(scenario["given"], running, request.environment)

    plan = build_plan(request, loaded, state, parse_now(scenario["given"]["now"]))

    sized = "megabytes_a_day" in scenario["given"]
    assert told(plan, loaded, sized=sized) == scenario["plan"].strip().splitlines()


def told(plan: Plan, graph: Graph, *, sized: bool = False) -> list[str]:
    """The plan as lines: what becomes of each model, its work, and who is left alone.

    Args:
        plan: what was planned.
        graph: the loaded models.
        sized: in how many batches as well.
    """
    lines = [line for model in plan.models for line in _model_lines(model, graph, sized=sized)]
    lines += [f"untouched {_short(model.model)}: {model.because}" for model in plan.untouched]
    lines += [f"removed {_short(name)}" for name in plan.removed]
    return lines or ["nothing to do"]


def _model_lines(planned: ModelPlan, graph: Graph, *, sized: bool) -> list[str]:
    category = f" {planned.category.value}" if planned.category else ""
    cadence = graph.models[planned.model].cadence
    lines = [f"{_short(planned.model)}: {planned.change.value}{category}, {planned.build.value}"]
    for work in planned.work:
        because = f", {work.because}" if work.because else ""
        sure = "" if work.certain else "?"
        lines.append(f"  {work.why.value}{sure} {ranges_text(cadence, work.cells)}{because}")
    if sized:
        lines.append(f"  {batches_text(planned)}")
    if planned.waiting:
        lines.append(f"  waiting {ranges_text(cadence, planned.waiting)}")
    return lines + [f"  note: {note}" for note in planned.notes]


def _short(name: str) -> str:
    return name.removeprefix("web.")


def parse_now(text: str) -> Any:  # noqa: ANN401 - an instant
    return parse_interval(START, text, Daily(start=START)).end


def _graphs(given: dict[str, Any]) -> tuple[Graph, Graph]:
    before = {name: _model(name, said or {}) for name, said in given["models"].items()}
    changed = dict((given.get("loaded") or {}).items())
    after = {
        name: _model(name, {**(given["models"].get(name) or {}), **(changed.get(name) or {})})
        for name in {**before, **changed}
        if changed.get(name, {}) != "removed"
    }
    columns = (*COLUMNS, Column("clicks", "bigint"))
    sources = [a_source(columns=columns, observed=given.get("observed", True))]
    return (
        a_graph(*before.values(), sources=sources),
        a_graph(*after.values(), sources=sources),
    )


def _model(name: str, said: dict[str, Any]) -> Model:
    unit = said.get("cadence", "daily")
    cadence = Whole() if unit == "whole" else CADENCES[unit](start=said.get("start", START))
    upstreams = [_upstream(upstream) for upstream in said.get("reads", ["events"])]
    more = (Column(column, "bigint") for column in said.get("more_columns", ()))
    columns = (*columns_on(cadence), *more)
    model = a_model(
        f"web.{name}",
        cadence=cadence,
        upstreams=upstreams,
        columns=columns,
        late_window=said.get("late_window", 0),
        description=said.get("description", ""),
        tags=said.get("tags", {}),
        forward_only=said.get("forward_only", False),
        batch_size=said.get("batch_size"),
    )
    return replace(model, query=SqlQuery(said["sql"])) if "sql" in said else model


def _upstream(said: str | dict[str, Any]) -> Upstream:
    if isinstance(said, str):
        return Upstream(f"web.{said}")
    ((name, how),) = said.items()
    lookback = own_cells(how["own_cells"]) if "own_cells" in how else how.get("lookback", 0)
    return Upstream(
        f"web.{name}",
        lookback,
        time_column="ds" if "reopens" in how else None,
        reopens=Reopens(how.get("reopens", "late_window")),
    )


def _request(said: dict[str, Any]) -> PlanRequest:
    plain = {key: value for key, value in said.items() if key not in ("restate", "categories")}
    restate = [_restatement(restated) for restated in said.get("restate", ())]
    categories = [(f"web.{k}", Category(v)) for k, v in said.get("categories", {}).items()]
    plain = {"environment": PROD, "asked_by": "ann", **plain}
    if "select" in plain:
        plain["select"] = tuple(plain["select"])
    return PlanRequest(**plain, restate=tuple(restate), categories=tuple(categories))


def _restatement(said: str) -> Restatement:
    name, _, span = said.partition(" ")
    start, _, end = span.partition("..")
    return Restatement(f"web.{name}", start or None, end or start or None)


def _state(given: dict[str, Any], graph: Graph, environment: str) -> PlanState:
    running: dict[str, Snapshot] = snapshots_of(graph)
    owner, models = given.get("owner", environment), {}
    held = {f"web.{name}": size * 10**6 for name, size in given.get("megabytes_a_day", {}).items()}
    for name in graph.order:
        print_ = running[name]
        pointer = Pointer(owner, name, print_.fingerprint.id, print_.version, 7)
        runs = [
            ReadyRun(each, at, stamps(at), f"b{at}", bytes_per_second=_per_second(held.get(name)))
            for at, cells in _ready(given, graph, name)
            for each in cells
        ]
        models[name] = ModelState(pointer, tuple(runs))
    owed = CellsByModel(
        {
            f"web.{name}": _cells(graph, f"web.{name}", span)
            for name, span in (given.get("owed") or {}).items()
        }
    )
    where = Environment(environment, protected=environment == PROD)
    return PlanState(
        view=StateView(where, models, owed=owed, counter=100, sources=_sources(held)),
        running=running,
        furthest_read={f"web.{k}": v for k, v in (given.get("read_back_to") or {}).items()},
    )


def _sources(held: dict[str, int]) -> dict[str, SourceState]:
    """The source of events, looked at over ten days, where the scenario says what it holds."""
    if EVENTS not in held:
        return {}
    run = ReadyRun(day(1, 10), 0, stamps(0), "", own=False)
    return {EVENTS: SourceState(a_pointer(EVENTS), (run,), bytes=10 * held[EVENTS])}


def _per_second(a_day: int | None) -> float | None:
    return None if a_day is None else a_day / timedelta(days=1).total_seconds()


def _ready(given: dict[str, Any], graph: Graph, name: str) -> list[tuple[int, IntervalSet]]:
    """What is ready and since when; a list of spans, of which a later one was built later."""
    said = (given.get("ready") or {}).get(_short(name), given.get("all_ready", "none"))
    spans = [said] if isinstance(said, str) else said
    first = 1 + graph.order.index(name)
    return [(first + 50 * at, _cells(graph, name, span)) for at, span in enumerate(spans)]


def _cells(graph: Graph, name: str, span: str) -> IntervalSet:
    if span == "none":
        return IntervalSet.empty()
    cadence = graph.models[name].cadence
    start, _, end = span.partition("..")
    return cadence.snap_in(cadence.snap_out(parse_interval(start, end or start, cadence)))
