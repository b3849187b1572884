"""Find the ready cells that are reopened: by a change of an upstream, or by new cells in a late window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading
from backfill_assets.models.upstream import Reopens

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.state_view import StateView


def reads_whole(model: Model, theirs: Cadence) -> bool:
    """Whether a model that lives on a grid reads an upstream that is one cell, a dimension."""
    return theirs.unit is Unit.WHOLE and model.cadence.unit is not Unit.WHOLE


def reopened(
    model: Model, upstream: Upstream, theirs: Cadence, changed: IntervalSet, ready: IntervalSet
) -> IntervalSet:
    """Give the cells that a change reopens: those that read it; of a dimension, as the reader declares.

    Args:
        model: the reader.
        upstream: how it reads what changed.
        theirs: the cadence of what changed.
        changed: whole cells of it.
        ready: the reader's cells that are ready; a dimension reopens no others.
    """
    if not changed or not reads_whole(model, theirs):
        return cells_reading(model.cadence, upstream, theirs, changed)
    match upstream.reopens:
        case Reopens.ALL:
            return ready
        case Reopens.LATE_WINDOW:
            return last_cells(model, ready, model.late_window)
        case Reopens.NEVER:
            return IntervalSet.empty()


def last_cells(model: Model, ready: IntervalSet, count: int) -> IntervalSet:
    """Give the last `count` ready cells: the model's late window."""
    hull = ready.hull()
    if hull is None or count == 0:
        return IntervalSet.empty()
    first = model.cadence.shift(hull.end, -count)
    return ready & IntervalSet.of([Interval(first, hull.end)])


def late_cells(cadence: Cadence, new: IntervalSet, window: int) -> IntervalSet:
    """Give each new cell with the `window` cells before it: ``{gap - k .. gap}``.

    Args:
        cadence: whose cells.
        new: cells that were not there before, whole.
        window: how many cells before a new one late rows may still belong to.
    """
    grid = cadence.grid
    return IntervalSet.of_pairs(
        (grid.boundary(grid.index(start) - window), end) for start, end in new.pairs()
    )


def reopened_by_new_cells(
    graph: Graph, view: StateView, model: Model, new: IntervalSet, within: IntervalSet
) -> IntervalSet:
    """Give the ready cells that a model's late window opens again beside its new cells.

    Only a model that reads a source which can't be observed has some: any other learns from the
    rule which cells got late rows.
    """
    sources = [graph.sources[up.name] for up in model.reads if up.name in graph.sources]
    if not new or all(source.observed for source in sources):
        return IntervalSet.empty()
    late = late_cells(model.cadence, new, model.late_window)
    return late & within & view.ready(model.name)
