"""Restatement cases: their models as ours, asked of the planner."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from backfill_assets.intervals import WHOLE_CELL, Cadence, Interval, IntervalSet, Whole
from backfill_assets.intervals.cron import Cron
from backfill_assets.intervals.instants import start_at
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.restating import Restated, spread, wrong_cells
from backfill_assets.planning.plan.windows import window_of
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView
from backfill_assets_tests.builders import a_graph, a_model, stamps
from backfill_assets_tests.vectors import translate as tr

Json = Any
_SOMETIME = "2000-01-01"
_EVER = IntervalSet.of([WHOLE_CELL])


def restate(case: dict[str, Json]) -> Json:
    """What a restatement declares wrong, and what the plan for it computes."""
    graph, now, call = _graph(case), tr.now_of(case), case["call"]
    is_dev = bool(call.get("is_dev"))
    view = _view(case, graph, "dev" if is_dev else PROD)
    request = PlanRequest(
        environment=view.environment.name,
        start=call.get("start"),
        end=call.get("end"),
        ignore_cron=bool(call.get("ignore_cron")),
        restate=tuple(Restatement(_ours(name)) for name in call["restate"]),
    )
    state = PlanState(view=view, running=_running(graph))
    plan = build_plan(request, graph, state, now)
    life = CellsByModel(
        {
            name: window_of(request, graph.models[name].cadence, now, view.ready(name)).life
            for name in graph.order
        }
    )
    wrong = wrong_cells(request, graph, view, life, now).spread
    return {
        "restatements": {
            _theirs(name): tr.texts([_hull(case, graph, name, cells, now)])[0]
            for name, cells in sorted(wrong.items())
        },
        "missing": {
            _theirs(model.model): tr.texts(_finite(case, graph, model.model, model.cells, now))
            for model in sorted(plan.models, key=lambda planned: planned.model)
            if model.cells
        },
    }


def auto_restate(case: dict[str, Json]) -> Json:
    """What a cron declares wrong: the last cells (or all), and what reads them."""
    graph, now, wrong = _graph(case), tr.now_of(case), Restated()
    view = _view(case, graph, PROD)
    following: dict[str, str | None] = {}
    for name, model in case["models"].items():
        cron, due = model.get("auto_restatement_cron"), model.get("next_auto_restatement")
        following[name] = due
        if cron is None or (due is not None and start_at(due, "UTC") > now):
            continue
        following[name] = tr.text(Cron(cron, "UTC").next(now))
        cadence, ready = graph.models[_ours(name)].cadence, view.ready(_ours(name))
        until, count = cadence.floor(now), model.get("auto_restatement_intervals")
        hull = ready.hull()
        first = hull.start if count is None and hull else cadence.shift(until, -(count or 1))
        wrong.declare(_ours(name), IntervalSet.of([Interval(first, until)]), "cron")
    spread(wrong, graph, view, CellsByModel(dict.fromkeys(graph.order, _EVER)))
    pending = CellsByModel({name: _as_hull(cells) for name, cells in wrong.spread.items()})
    ready_after = {name: view.ready(name) - pending[name] for name in graph.order}
    return {
        "pending": {_theirs(name): tr.texts(cells) for name, cells in sorted(pending.items())},
        "state_after": {_theirs(name): tr.texts(ready_after[name]) for name in sorted(ready_after)},
        "next": following,
    }


def _as_hull(cells: IntervalSet) -> IntervalSet:
    hull = cells.hull()
    return cells if hull is None else IntervalSet.of([hull])


def _ours(name: str) -> str:
    return f"m.{name}"


def _theirs(name: str) -> str:
    return name.partition(".")[2]


def _graph(case: dict[str, Json]) -> Graph:
    models = case["models"]
    return a_graph(*(_model(name, each, models) for name, each in models.items()))


def _model(name: str, model: dict[str, Json], models: dict[str, Json]) -> Model:
    upstreams = [
        Upstream(_ours(each), time_column="ds")
        for each in model.get("depends_on", ())
        if each in models
    ]
    if model.get("depends_on_self"):
        upstreams.append(Upstream(_ours(name), lookback=1))
    return a_model(
        _ours(name),
        cadence=_cadence(name, model, models),
        upstreams=upstreams,
        late_window=model.get("lookback") or 0,
    )


def _cadence(name: str, model: dict[str, Json], models: dict[str, Json]) -> Cadence:
    if model.get("kind") in tr.ONE_BATCH:
        return Whole()
    return tr.cadence_of(model, tr.start_of(name, models) or start_at(_SOMETIME, "UTC"))


def _view(case: dict[str, Json], graph: Graph, environment: str) -> StateView:
    prints = snapshots_of(graph)
    states: dict[str, ModelState] = {}
    for name, model in case["models"].items():
        ours = _ours(name)
        ready = tr.state_of(model)
        if ready and graph.models[ours].cadence == Whole():
            ready = _EVER
        runs = [ReadyRun(each, 1, stamps(1), "before") for each in ready]
        owner = PROD if model.get("unpaused") else environment
        pointer = Pointer(owner, ours, prints[ours].fingerprint.id, prints[ours].version, 1)
        states[ours] = ModelState(pointer, tuple(runs))
    return StateView(Environment(environment, protected=environment == PROD), states)


def _running(graph: Graph) -> dict[str, Snapshot]:
    return snapshots_of(graph)


def _finite(
    case: dict[str, Json], graph: Graph, name: str, cells: IntervalSet, now: datetime
) -> IntervalSet:
    """A model that is rebuilt as a whole: from what it holds, or its start, to now."""
    if graph.models[name].cadence != Whole():
        return cells
    model = case["models"][_theirs(name)]
    cadence, held = tr.cadence_of(model, start_at(_SOMETIME, "UTC")), tr.state_of(model).hull()
    start = held.start if held else cadence.start
    assert start is not None
    return IntervalSet.of([Interval(start, cadence.floor(now))])


def _hull(
    case: dict[str, Json], graph: Graph, name: str, cells: IntervalSet, now: datetime
) -> Interval:
    hull = _finite(case, graph, name, cells, now).hull()
    assert hull is not None
    return hull
