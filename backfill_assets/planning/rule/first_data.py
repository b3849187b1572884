"""Find where the data that a model reads begins, as far as its sources were looked at.

A requested range that starts earlier is cut to that start, and the plan notes it. Required cells do not
change: the cells before are left out of this plan only. A model's own start is its author's declaration
and is not moved (docs/adr/0008): a plan names the cells before the first data, and plans them unless
they wait for rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.source import WhenEmpty

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.state_view import StateView


@dataclass(frozen=True, slots=True)
class FirstData:
    """Where the data that a model can read begins.

    Attributes:
        at: the instant (UTC); None where it is not known.
        words: what begins there, or why it is not known; empty without a note.
        before: what becomes of cells before it, where a source does not accept that they are empty.
    """

    at: datetime | None
    words: str = ""
    before: str = ""


def first_data(graph: Graph, *views: StateView) -> dict[str, FirstData]:
    """Find for every model where the data that it can read begins.

    It is known only of a model each of whose upstreams is a source that is cut into cells and was
    looked at, or such a model. A cell that lost its rows counts: it held some once.

    Args:
        graph: every model and source.
        views: the environment's state, and that of a workspace: what a model holds already may be
            earlier than what its sources hold now.
    """
    sources = {name: _of_source(graph, views[0], name) for name in graph.sources}
    by_model: dict[str, FirstData] = {}
    for name in graph.order:
        by_model[name] = _of_model(graph, views, graph.models[name], by_model, sources)
    return by_model


def before_data(
    model: Model, first: FirstData, asked: str, gaps: IntervalSet
) -> tuple[IntervalSet, str]:
    """Give the gaps that lie wholly before the first data, and say why they are left out.

    Args:
        model: whose cells.
        first: where the data that it can read begins.
        asked: the requested start, as written.
        gaps: cells in the requested range that hold nothing.
    """
    if gaps and first.at is None:
        words = f"the range starts at {asked} as asked: {first.words}" if first.words else ""
        return IntervalSet.empty(), words
    early = _before(model, first, gaps)
    if not early:
        return early, ""
    left_out = ranges_text(model.cadence, early)
    return early, (
        f"asked from {asked}, begins where its data does: {first.words}; left out, and still "
        f"missing unless a planned cell reads it: {left_out}"
    )


def said_of_early(model: Model, first: FirstData, gaps: IntervalSet) -> str:
    """Name the gaps that a model's own start puts before the first data, and what becomes of them."""
    early = _before(model, first, gaps)
    if not early:
        return ""
    cells = ranges_text(model.cadence, early)
    becomes = first.before or _NO_ROWS
    return (
        f"starts before its data does: {first.words}; {becomes}: {cells}; a later start of the model "
        "leaves them out for good"
    )


def _before(model: Model, first: FirstData, gaps: IntervalSet) -> IntervalSet:
    """Give the gaps that lie wholly before the first data; none where that is not known."""
    if not gaps or first.at is None:
        return IntervalSet.empty()
    return gaps.within(gaps.boundaries[0], epoch_of(model.cadence.floor(first.at)))


def _of_model(
    graph: Graph,
    views: tuple[StateView, ...],
    model: Model,
    models: Mapping[str, FirstData],
    sources: Mapping[str, FirstData],
) -> FirstData:
    if model.cadence.unit is Unit.WHOLE or model.in_order or not model.reads:
        return FirstData(None)
    begins = [
        sources[up.name] if up.name in sources else _held(graph, views, up.name, models)
        for up in model.reads
    ]
    unknown = [start for start in begins if start.at is None]
    if unknown:
        return max(unknown, key=lambda start: start.words)
    before = next((start.before for start in begins if start.before), "")
    return replace(min(begins, key=_at), before=before)


def _of_source(graph: Graph, view: StateView, name: str) -> FirstData:
    source, state = graph.sources[name], view.sources.get(name)
    if source.time_column is None or source.cadence.unit is Unit.WHOLE:
        return _uncut(name)
    if state is None or not source.observed:
        return FirstData(None, f"where {name} begins is not known, since it was never looked at")
    if not state.runs:
        return FirstData(None, f"{name} held no rows when it was looked at last")
    at = min(run.interval.start for run in state.runs)
    cell = IntervalSet.of([Interval(source.cadence.floor(at), source.cadence.next(at))])
    return FirstData(
        at,
        f"{name} holds no rows before {ranges_text(source.cadence, cell)} "
        f"(delta_version {state.pointer.delta_version})",
        _BEFORE[source.when_empty].format(name),
    )


def _held(
    graph: Graph, views: tuple[StateView, ...], name: str, models: Mapping[str, FirstData]
) -> FirstData:
    """Find where an upstream model begins: with its data, or with earlier ready cells."""
    first, ready = models[name], IntervalSet.union_all(view.ready(name) for view in views)
    if graph.models[name].cadence.unit is Unit.WHOLE:
        return _uncut(name)
    if first.at is None:
        return FirstData(None, first.words)
    if not ready or ready.boundaries[0] >= epoch_of(first.at):
        return first
    at = instant_of(ready.boundaries[0])
    cadence = graph.models[name].cadence
    cell = IntervalSet.of([Interval(at, cadence.next(at))])
    words = f"{name} is ready from {ranges_text(cadence, cell)} on"
    return FirstData(at, words, first.before)


_NO_ROWS = "planned nevertheless (--start leaves them out), as the query makes them of no rows"
_BEFORE = {
    WhenEmpty.ACCEPT: "",
    WhenEmpty.WAIT: "left out, as they wait for rows of {}",
    WhenEmpty.FAIL: "planned nevertheless (--start leaves them out), and they fail without rows of {}",
}


def _uncut(name: str) -> FirstData:
    return FirstData(None, f"where {name} begins is not known, since it is not cut into cells")


def _at(first: FirstData) -> float:
    return epoch_of(first.at) if first.at is not None else 0.0
