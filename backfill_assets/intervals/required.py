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


def required(
    cadence: Cadence,
    *,
    now: datetime,
    ignore_cron: bool = False,
    ready: IntervalSet | None = None,
) -> IntervalSet:
    """The cells that must hold audited data.

    From the model's start to its end, or to the boundary up to which cells are due. A model that is
    rebuilt as a whole requires its one cell. A cell that is ready stays required where a cron calls it
    due later only: it is read already.

    Args:
        cadence: the model's cells and life.
        now: the instant that counts as now.
        ignore_cron: every cell that is over by now is due, whatever the cron says.
        ready: the cells that are ready, wherever they lie.

    Raises:
        DeclarationError: the model has no start.
    """
    if cadence.unit is Unit.WHOLE:
        return IntervalSet.of([WHOLE_CELL])
    if cadence.start is None:
        raise DeclarationError(
            found="the model has no start, and reads nothing that has one",
            do="give its cadence one, for example Daily(start='2024-01-01')",
        )
    over = cadence.floor(now)
    begin = epoch_of(cadence.floor(cadence.start))
    cells = IntervalSet.of_pairs([(begin, epoch_of(min(over, cadence.end or over)))])
    if ignore_cron:
        return cells
    due = cells.within(begin, epoch_of(cadence.due(now)))
    return due | (cells & ready) if ready else due


def missing(cadence: Cadence, required: IntervalSet, ready: IntervalSet) -> IntervalSet:
    """The required cells that are not wholly ready, anywhere in history.

    A cell that is half ready is missing as a whole.
    """
    return cadence.snap_out(required - ready) & required
