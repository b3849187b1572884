"""Find the cells that read upstream cells which are published no more.

The rule compares when cells were built and when what they read changed. A cell that is gone has no such
stamp, so where a publication takes cells away, what was computed from them is found here, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.state_view import ModelState, StateView


def reading(graph: Graph, model: Model, cells: CellsByModel) -> IntervalSet:
    """Give the cells of a model that read any of some cells of models."""
    return IntervalSet.union_all(each for _, each in _by_upstream(graph, model, cells))


def computed_from(graph: Graph, view: StateView, lost: CellsByModel) -> CellsByModel:
    """Give the ready cells that were built when cells which will be lost were there to be read.

    Args:
        graph: the models as they run before the cells are lost.
        view: what is ready before.
        lost: by model.
    """
    appeared = {name: _appeared(view.models[name], cells) for name, cells in lost.items()}
    return CellsByModel.of(
        (name, cells & _built_since(view.models[name], appeared[upstream]))
        for name in graph.order
        if name in view.models
        for upstream, cells in _by_upstream(graph, graph.models[name], lost)
    )


def _by_upstream(
    graph: Graph, model: Model, cells: CellsByModel
) -> Iterator[tuple[str, IntervalSet]]:
    for up in model.reads:
        if up.name in cells:
            theirs = graph.models[up.name].cadence
            yield up.name, cells_reading(model.cadence, up, theirs, cells[up.name])


def _appeared(state: ModelState, cells: IntervalSet) -> int:
    """Give the counter when the first of some ready cells got what it holds."""
    runs = (run for run in state.runs if IntervalSet.of([run.interval]) & cells)
    return min(run.changed_at.latest(None) for run in runs)


def _built_since(state: ModelState, number: int) -> IntervalSet:
    return IntervalSet.of(run.interval for run in state.runs if run.built_at >= number)
