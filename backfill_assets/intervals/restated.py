"""Compute how far the restatement of a range reaches within the same model."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval


class Reach(Enum):
    """Which other cells of a model are wrong when some of its cells are."""

    CELLS = "nothing else"
    ONWARD = "all later cells: the model reads its own earlier ones"
    HISTORY = "all cells: the model can't rebuild a part of itself"


def restated(
    cadence: Cadence, asked: Interval, *, reach: Reach, ready: IntervalSet, now: datetime
) -> IntervalSet:
    """The cells that a restatement declares wrong; the ready ones of them become work again.

    A reach beyond the requested range ends now; such a model has no restated cells after now.

    Args:
        cadence: The model's cells.
        asked: The range that a person names; it rounds outward.
        reach: How far an error in the model reaches.
        ready: What the model holds.
        now: The instant that counts as now: an error reaches no further.
    """
    cells = cadence.snap_out(asked)
    if reach is Reach.CELLS:
        return cells
    start, end = cells.boundaries[0], epoch_of(cadence.ceil(now))
    if reach is Reach.HISTORY and ready and start < end:
        start = ready.boundaries[0]
    return cadence.snap_out(IntervalSet.of_pairs([(start, end)]))


def onward(cells: IntervalSet, life: IntervalSet) -> IntervalSet:
    """Every cell of a life from the first of some cells on: one that reads earlier ones is wrong from there."""
    if not cells:
        return cells
    return life.within(cells.boundaries[0], life.boundaries[-1]) if life else cells
