"""Find the cells that a restatement makes wrong: in the named model or source, and in its readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.parse_range import parse_interval, parse_range
from backfill_assets.intervals.required import required
from backfill_assets.intervals.restated import onward, restated
from backfill_assets.models.cells import cells_reading
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.graph import unknown_model
from backfill_assets.models.model import Model
from backfill_assets.models.upstream import Reopens
from backfill_assets.planning.plan.request_rules import refuse_unknown_columns
from backfill_assets.planning.plan.windows import check_start
from backfill_assets.planning.rule.lost_inputs import cells_reading_any
from backfill_assets.planning.rule.reopening import reads_whole, reopened

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.request import PlanRequest, Restatement
    from backfill_assets.snapshots.state_view import StateView


@dataclass(slots=True)
class Restated:
    """Cells that a restatement is about, by model.

    Attributes:
        named: cells that were declared wrong: the model itself, or it reads such a source.
        spread: those, and every cell that reads one of them, directly or through others.
        because: who declared it, in words.
        asked: the range as it was named, of models that are rebuilt as a whole.
    """

    named: CellsByModel = field(default_factory=CellsByModel)
    spread: CellsByModel = field(default_factory=CellsByModel)
    because: dict[str, str] = field(default_factory=dict[str, str])
    asked: CellsByModel = field(default_factory=CellsByModel)

    def declare(self, name: str, cells: IntervalSet, because: str) -> None:
        """Add cells that were declared wrong."""
        self.named |= {name: cells}
        self.because.setdefault(name, because)


def wrong_cells(
    request: PlanRequest,
    graph: Graph,
    view: StateView,
    life: CellsByModel,
    now: datetime,
) -> Restated:
    """Give the cells that the request declares wrong, through lookback and across grains.

    Args:
        request: what was asked.
        graph: what the environment is to run.
        view: what is ready.
        life: per model, its required cells, whatever the range.
        now: the instant that history ends at.

    Raises:
        RequestError: there is no such model or source.
        OutsideLifeError: a named range lies outside the life of what it names.
        RequestError: a source is restated, and only some rows of a model may differ; or the condition on
            these names a column that the model does not have.
        RequestError: a named range starts in the future.
    """
    wrong = Restated()
    by = f"restated by {request.asked_by}" if request.asked_by else "restated"
    for restatement in request.restate:
        node = _node(graph, restatement.name)
        interval = _asked(request, restatement, node.cadence, now)
        if isinstance(node, Model):
            if request.where is not None:
                refuse_unknown_columns(request.where, node)
            cells = restated(node.cadence, interval, in_order=node.in_order, now=now)
            wrong.declare(restatement.name, cells, by)
            _keep_asked(wrong, node, IntervalSet.of([interval]))
        else:
            _refuse_slice(request, restatement.name)
    _read_sources(wrong, graph, restated_sources(request, graph, now), by)
    spread(wrong, graph, view, life)
    return wrong


def restated_sources(request: PlanRequest, graph: Graph, now: datetime) -> CellsByModel:
    """Give the cells of sources that a request declares wrong, by source.

    Raises:
        RequestError: a named range starts in the future.
    """
    sources = CellsByModel()
    for restatement in request.restate:
        source = graph.sources.get(restatement.name)
        if source is not None:
            interval = _asked(request, restatement, source.cadence, now)
            sources |= {source.name: source.cadence.snap_out(interval)}
    return sources


def restated_cells(plan: Plan, graph: Graph, view: StateView) -> CellsByModel:
    """Give the cells that a plan's restatements reach in a new table, by model; others are not in it.

    There every cell is built anew, so it reads the restated cells whatever its reader declares about
    reopening.

    Args:
        plan: the plan.
        graph: what its workspace runs.
        view: what its environment publishes.
    """
    request, now = plan.request, plan.until
    life = CellsByModel(
        {
            name: required(
                graph.models[name].cadence,
                now=now,
                ignore_cron=request.ignore_cron,
                ready=view.ready(name),
            )
            for name in graph.order
        }
    )
    wrong = wrong_cells(request, graph, view, life, now).spread
    for name in graph.order:
        model = graph.models[name]
        cells = (wrong[name] | cells_reading_any(graph, model, wrong)) & life[name]
        wrong |= {name: onward(cells, life[name]) if model.in_order else cells}
    return wrong


def _node(graph: Graph, name: str) -> Model | Source:
    if name in graph.models or name in graph.sources:
        return graph.node(name)
    raise unknown_model(name, {*graph.models, *graph.sources})


def _refuse_slice(request: PlanRequest, source: str) -> None:
    """Refuse a condition on a model's columns where no model is named that it could be about."""
    if request.where is not None:
        problem = f"--where is about a model's own columns, and '{source}' is a source"
        raise RequestError(found=problem, do="restate the models that read it")


def _asked(
    request: PlanRequest, restatement: Restatement, cadence: Cadence, now: datetime
) -> Interval:
    """Read the range: its own bounds, else those of the request, else the whole life."""
    start = restatement.start if restatement.start is not None else request.start
    end = restatement.end if restatement.end is not None else request.end
    check_start(start, cadence, now)
    if cadence.unit is Unit.WHOLE and start is None and end is None:
        return WHOLE_CELL
    first = start if start is not None else cadence.start or cadence.ceil(WHOLE_CELL.start)
    last = end if end is not None else max(cadence.ceil(now), cadence.next(cadence.start or now))
    if cadence.unit is Unit.WHOLE:  # it has one cell, and its readers have those of the range
        return parse_interval(first, last, cadence)
    return parse_range(first, last, cadence).interval


def _read_sources(wrong: Restated, graph: Graph, sources: CellsByModel, by: str) -> None:
    """Declare wrong what reads a wrong source."""
    for name in graph.order:
        model = graph.models[name]
        for up in model.reads:
            if up.name not in sources:
                continue
            source_cadence = graph.sources[up.name].cadence
            cells = _reading(model, up, source_cadence, sources[up.name])
            wrong.declare(name, cells, f"{up.name} {by}")
            _keep_asked(wrong, model, sources[up.name])


def _reading(
    model: Model, up: Upstream, source_cadence: Cadence, changed: IntervalSet
) -> IntervalSet:
    """Give the cells that read a source; of one that is read as a whole, the named stretch."""
    if reads_whole(model, source_cadence):
        return model.cadence.snap_out(changed)
    return cells_reading(model.cadence, up, source_cadence, changed)


def spread(wrong: Restated, graph: Graph, view: StateView, life: CellsByModel) -> None:
    """Follow what is wrong downstream, to every cell that reads it."""
    for name in graph.order:
        model = graph.models[name]
        cells = wrong.named[name]
        for up in model.reads:
            if up.name in wrong.spread and up.name != name:
                cells |= _reached(wrong, graph, view, model, up)
        cells &= life[name]
        if model.in_order:
            cells = onward(cells, life[name])
        wrong.spread |= {name: cells}


def _reached(
    wrong: Restated, graph: Graph, view: StateView, model: Model, up: Upstream
) -> IntervalSet:
    upstream_cadence, cells = graph.models[up.name].cadence, wrong.spread[up.name]
    reached = reopened(model, up, upstream_cadence, cells, view.ready(model.name))
    if not reads_whole(model, upstream_cadence):
        _keep_asked(wrong, model, cells)
    elif up.reopens is Reopens.LATE_WINDOW:
        reached |= model.cadence.snap_out(wrong.asked[up.name])
    return reached


def _keep_asked(wrong: Restated, model: Model, cells: IntervalSet) -> None:
    """Remember the stretch that went into a model that is rebuilt as a whole."""
    if model.cadence.unit is Unit.WHOLE:
        finite = cells if not cells.covers(*_WHOLE) else IntervalSet.empty()
        wrong.asked |= {model.name: finite}


_WHOLE = IntervalSet.of([WHOLE_CELL]).boundaries
