"""Find the cells that the life of a model leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from backfill_assets.models.model import Model


def outside_life(model: Model, cells: IntervalSet) -> IntervalSet:
    """Give those of the cells that lie before the model's start or after its end."""
    if not cells or model.cadence.unit is Unit.WHOLE:
        return IntervalSet.empty()
    first, last = cells.boundaries[0], cells.boundaries[-1]
    start, end = model.cadence.start, model.cadence.end
    first = first if start is None else max(first, epoch_of(start))
    last = last if end is None else min(last, epoch_of(end))
    return cells - cells.within(first, last) if first < last else cells
