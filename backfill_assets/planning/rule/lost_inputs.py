"""Find the cells that read upstream cells which are published no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


def cells_reading_any(graph: Graph, model: Model, cells: CellsByModel) -> IntervalSet:
    """Give the cells of a model that read any of some cells of models."""
    read = (up.name for up in model.reads if up.name in cells)
    cadences = {name: graph.models[name].cadence for name in read}
    return IntervalSet.union_all(
        each for _, each in cells_reading_by_upstream(cadences, model, cells)
    )


def cells_reading_by_upstream(
    cadences: Mapping[str, Cadence], model: Model, cells: CellsByModel
) -> Iterator[tuple[str, IntervalSet]]:
    """Give the same by the upstream that they read, of which the cadence is given by name."""
    for up in model.reads:
        if up.name in cells:
            yield up.name, cells_reading(model.cadence, up, cadences[up.name], cells[up.name])
