"""Compute the required cells of a model, and the missing ones among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence


def required(  # noqa: PLR0913 - each bounds the cells in its own way
    cadence: Cadence,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    now: datetime,
    ignore_cron: bool = False,
    end_bounded: bool = False,
    ready: IntervalSet | None = None,
) -> IntervalSet:
    """The cells that must hold audited data.

    From the later of the requested and the model's start to the earliest of the requested end, the
    model's end and the boundary up to which cells are due. A requested range rounds outward, but
    one shorter than a cell requires none. A model that is rebuilt as a whole requires its one cell.
    A cell that is ready stays required where a cron calls it due later only: it is read already.

    Args:
        cadence: the model's cells and life.
        start: the requested start; None: the model's.
        end: the requested exclusive end; None: the model's, or now.
        now: the instant that counts as now.
        ignore_cron: every cell that is over by now is due, whatever the cron says.
        end_bounded: nothing past the requested end: the last cell must be over by then.
        ready: the cells that are ready, wherever they lie.

    Raises:
        DeclarationError: neither the model nor the request has a start.
    """
    if cadence.unit is Unit.WHOLE:
        return IntervalSet.of([WHOLE_CELL])
    first = _latest(start, cadence.start)
    bounds = [cadence.floor(now)]
    if cadence.end is not None:
        bounds.append(cadence.end)
    if end is not None:
        if end - first < cadence.shortest_cell(first):
            return IntervalSet.empty()
        bounds.append(cadence.floor(end) if end_bounded else cadence.ceil(end))
    begin, over = epoch_of(cadence.floor(first)), epoch_of(min(bounds))
    cells = IntervalSet.of_pairs([(begin, over)])
    if ignore_cron:
        return cells
    due = cells.within(begin, epoch_of(cadence.due(now)))
    return due | (cells & ready) if ready else due


def missing(cadence: Cadence, required: IntervalSet, ready: IntervalSet) -> IntervalSet:
    """The required cells that are not wholly ready, anywhere in history.

    A cell that is half ready is missing as a whole.
    """
    return cadence.snap_out(required - ready) & required


def _latest(requested: datetime | None, life: datetime | None) -> datetime:
    starts = [start for start in (requested, life) if start is not None]
    if not starts:
        raise DeclarationError(
            found="the model has no start, reads nothing that has one, and no start was requested",
            do="give its cadence one, for example Daily(start='2024-01-01')",
        )
    return max(starts)
