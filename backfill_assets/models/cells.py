"""Compute which cells of an upstream a cell reads, and which cells read a changed one.

The answer is exact, on the model's own zone and grid. Dagster's partition mappings are compiled from
the same declarations and contain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import FixedGrid, Unit, boundary_from
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.upstream import OwnCells

if TYPE_CHECKING:
    from collections.abc import Callable
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
        return _life(theirs, theirs.floor(until))
    back = reach_back(own, upstream, theirs)
    widened = IntervalSet.of_bounds(map(back, cells.boundaries[::2]), cells.boundaries[1::2])
    return theirs.snap_out(widened) & _life(theirs, until=None)


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
    return own.snap_out(_forward(own, upstream, theirs, changed))


def cells_without_input(
    own: Cadence,
    upstream: Upstream,
    theirs: Cadence,
    cells: IntervalSet,
    there: IntervalSet,
    *,
    until: datetime,
) -> IntervalSet:
    """Give those of a reader's `cells` that read an upstream cell which is not `there`.

    The other arguments are those of `cells_read`.
    """
    lacking = lacking_input(own, upstream, theirs, cells, there, until=until)
    return cells_reading(own, upstream, theirs, lacking) & cells


def lacking_input(
    own: Cadence,
    upstream: Upstream,
    theirs: Cadence,
    cells: IntervalSet,
    there: IntervalSet,
    *,
    until: datetime,
) -> IntervalSet:
    """Give the upstream cells that a reader's `cells` wait for: those that they read, and that are not `there`.

    The other arguments are those of `cells_read`.
    """
    read = cells_read(own, upstream, theirs, cells, until=until)
    if own.unit is Unit.WHOLE:  # it waits for no cell that a cron calls due later
        read &= _life(theirs, theirs.due(until))
    return read - there


def reach_back(own: Cadence, upstream: Upstream, theirs: Cadence) -> Callable[[int], int]:
    """Map the start of a cell to the start of the upstream cells that it reads (epoch seconds).

    Neither of the two cadences is that of a model that is rebuilt as a whole.
    """
    grid, count = counted_in(own, upstream, theirs).grid, upstream.cells_back
    if isinstance(grid, FixedGrid):
        step, phase = grid.step, grid.phase
        if own.grid == grid:  # where its own cell begins
            return lambda start: start - count * step
        return lambda start: ((start - phase) // step - count) * step + phase
    return lambda start: grid.boundary(grid.index(start) - count)


def _forward(
    own: Cadence, upstream: Upstream, theirs: Cadence, changed: IntervalSet
) -> IntervalSet:
    """Reach from the last changed cell forward over the lookback."""
    grid, count = counted_in(own, upstream, theirs).grid, upstream.cells_back
    starts, ends = changed.boundaries[::2], changed.boundaries[1::2]
    if isinstance(grid, FixedGrid):  # the same as below, without calls
        step, phase = grid.step, grid.phase
        last = [(count - (phase - end) // step) * step + phase for end in ends]
    else:
        last = [grid.boundary(grid.index(boundary_from(grid, end)) + count) for end in ends]
    return IntervalSet.of_bounds(starts, last)


def counted_in(own: Cadence, upstream: Upstream, theirs: Cadence) -> Cadence:
    """Give the cadence whose cells a lookback counts: the reader's own, or the upstream's."""
    return own if isinstance(upstream.lookback, OwnCells) else theirs


def _life(cadence: Cadence, until: datetime | None) -> IntervalSet:
    end = min(end for end in (cadence.end, until, WHOLE_CELL.end) if end is not None)
    start = cadence.start or cadence.ceil(WHOLE_CELL.start)  # a source may declare no start
    if start >= end:
        return IntervalSet.empty()
    return cadence.snap_in(IntervalSet.of([Interval(start, end)]))
