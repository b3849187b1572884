"""Late windows of sources that can't be observed: new cells reopen the ready cells before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.state_view import StateView


def late_cells(cadence: Cadence, new: IntervalSet, window: int) -> IntervalSet:
    """Give each new cell with the `window` cells before it: ``{gap - k .. gap}``.

    Args:
        cadence: whose cells.
        new: cells that were not there before, whole.
        window: how many cells before a new one late rows may still belong to.
    """
    if window == 0 or cadence.unit is Unit.WHOLE:
        return new
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
