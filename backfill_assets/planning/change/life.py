"""Find the cells that the life of a model leaves out, and those that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.model_change import Changes
    from backfill_assets.planning.change.planned_graph import PlannedGraph


def outside_life(model: Model, cells: IntervalSet) -> IntervalSet:
    """Give those of the cells that lie before the model's start or after its end."""
    if not cells or model.cadence.unit is Unit.WHOLE:
        return IntervalSet.empty()
    first, last = cells.boundaries[0], cells.boundaries[-1]
    start, end = model.cadence.start, model.cadence.end
    first = first if start is None else max(first, epoch_of(start))
    last = last if end is None else min(last, epoch_of(end))
    return cells - cells.within(first, last) if first < last else cells


def lost_reads(
    planned: PlannedGraph, changes: Changes, name: str
) -> Iterator[tuple[Model, IntervalSet, IntervalSet]]:
    """Give each upstream that loses published cells, these, and the cells of a model that read them.

    Args:
        planned: what the environment is to run.
        changes: of the upstreams at least.
        name: the model that reads.
    """
    cadence = planned.models[name].cadence
    for upstream, upstream_model in planned.upstream_models(name):
        if lost := changes.models[upstream.name].lost:
            yield (
                upstream_model,
                lost,
                cells_reading(cadence, upstream, upstream_model.cadence, lost),
            )
