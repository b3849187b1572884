"""Which cells of an upstream a cell reads, and which cells read a changed one.

The exact answer, on the model's own zone and grid; Dagster's partition mappings are compiled from
the same declarations and contain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.upstream import OwnCells

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.upstream import Upstream


def cells_read(
    own: Cadence, upstream: Upstream, theirs: Cadence, cells: IntervalSet, *, until: datetime
) -> IntervalSet:
    """Give the upstream cells that `cells` read.

    Args:
        own: the reading model's cadence.
        upstream: how it reads.
        theirs: the upstream's cadence.
        cells: whole cells of the reader.
        until: where history ends now (UTC): what a `Full` reader reads ends there.

    Returns:
        Whole upstream cells inside the upstream's life; a `Full` upstream is one cell.
    """
    if not cells:
        return IntervalSet.empty()
    if theirs.unit is Unit.WHOLE:
        return theirs.snap_out(cells)
    if own.unit is Unit.WHOLE:
        return _life(theirs, theirs.due(until))
    widened = (_back(own, upstream, theirs, cell) for cell in cells)
    return theirs.snap_out(IntervalSet.of(widened)) & _life(theirs, until=None)


def cells_reading(
    own: Cadence, upstream: Upstream, theirs: Cadence, changed: IntervalSet
) -> IntervalSet:
    """Give the reader's cells that read any of the changed upstream cells: the inverse."""
    if not changed:
        return IntervalSet.empty()
    if own.unit is Unit.WHOLE:
        return own.snap_out(changed)
    if theirs.unit is Unit.WHOLE:
        return _life(own, until=None)
    return own.snap_out(IntervalSet.of(_forward(own, upstream, theirs, one) for one in changed))


def _back(own: Cadence, upstream: Upstream, theirs: Cadence, cells: Interval) -> Interval:
    """Reach from the first cell back over the lookback."""
    if isinstance(upstream.lookback, OwnCells):
        return Interval(own.shift(cells.start, -upstream.lookback.count), cells.end)
    first = theirs.floor(cells.start)
    return Interval(theirs.shift(first, -upstream.lookback), cells.end)


def _forward(own: Cadence, upstream: Upstream, theirs: Cadence, changed: Interval) -> Interval:
    """Reach from the last changed cell forward over the lookback."""
    if isinstance(upstream.lookback, OwnCells):
        return Interval(changed.start, own.shift(own.ceil(changed.end), upstream.lookback.count))
    return Interval(changed.start, theirs.shift(theirs.ceil(changed.end), upstream.lookback))


def _life(cadence: Cadence, until: datetime | None) -> IntervalSet:
    end = min(end for end in (cadence.end, until, WHOLE_CELL.end) if end is not None)
    start = cadence.start or cadence.ceil(WHOLE_CELL.start)  # a source may not say when it began
    if start >= end:
        return IntervalSet.empty()
    return cadence.snap_in(IntervalSet.of([Interval(start, end)]))
