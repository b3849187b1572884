"""Compute how far the restatement of a range reaches within the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval


def restated(cadence: Cadence, asked: Interval, *, in_order: bool, now: datetime) -> IntervalSet:
    """The cells that a restatement declares wrong; the ready ones of them become work again.

    Args:
        cadence: the model's cells.
        asked: the range that a person names; it rounds outward.
        in_order: the model reads its own earlier cells: all later ones are wrong too, up to now.
        now: the instant that counts as now.
    """
    cells = cadence.snap_out(asked)
    if not in_order:
        return cells
    until = epoch_of(cadence.ceil(now))
    return cadence.snap_out(IntervalSet.of_pairs([(cells.boundaries[0], until)]))


def onward(cells: IntervalSet, life: IntervalSet) -> IntervalSet:
    """Every cell of a life from the first of some cells on: one that reads earlier ones is wrong from there."""
    if not cells:
        return cells
    return life.within(cells.boundaries[0], life.boundaries[-1]) if life else cells
