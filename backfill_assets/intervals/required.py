"""Required and missing: which cells a model must hold, and which of them it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence


class UnknownStartError(BackfillAssetsError):
    """Nobody said where a model's history begins, and it never means infinite history."""

    def __init__(self) -> None:
        super().__init__(
            "The model has no start, reads nothing that has one, and no start was requested. "
            "Give its cadence one, for example Daily(start='2024-01-01')."
        )


def required(
    cadence: Cadence,
    *,
    start: datetime | None,
    end: datetime | None,
    now: datetime,
    ignore_cron: bool = False,
    end_bounded: bool = False,
) -> IntervalSet:
    """The cells that must hold audited data.

    From the later of the requested and the model's start to the earliest of the requested end, the
    model's end and the boundary up to which cells are due. A requested range rounds outward, but
    one shorter than a cell requires none. A model that is rebuilt as a whole requires its one cell.

    Args:
        cadence: The model's cells and life.
        start: The requested start; None: the model's.
        end: The requested exclusive end; None: the model's, or now.
        now: The instant that counts as now.
        ignore_cron: Every cell that is over by now is due, whatever the cron says.
        end_bounded: Nothing past the requested end: the last cell must be over by then.

    Raises:
        UnknownStartError: Neither the model nor the request has a start.
    """
    if cadence.unit is Unit.WHOLE:
        return IntervalSet.of([WHOLE_CELL])
    first = _latest(start, cadence.start)
    if end is not None and end - first < cadence.shortest_cell(first):
        return IntervalSet.empty()
    bounds = [cadence.floor(now) if ignore_cron else cadence.due(now)]
    if end is not None:
        bounds.append(cadence.floor(end) if end_bounded else cadence.ceil(end))
    if cadence.end is not None:
        bounds.append(cadence.end)
    return IntervalSet.of_pairs([(epoch_of(cadence.floor(first)), epoch_of(min(bounds)))])


def missing(cadence: Cadence, required: IntervalSet, ready: IntervalSet) -> IntervalSet:
    """The required cells that are not wholly ready, anywhere in history."""
    return cadence.snap_out(required - ready)


def inherited(cadence: Cadence, ready: IntervalSet, *, before: datetime | None) -> IntervalSet:
    """The ready cells that a successor takes over: the whole ones before its effective date.

    Args:
        cadence: The successor's cells.
        ready: What its predecessor holds.
        before: The effective date; None: it takes over all.
    """
    if before is not None and ready:
        ready = ready.within(ready.boundaries[0], epoch_of(before))
    return cadence.snap_in(ready)


def inherited_start(own: datetime | None, upstreams: Iterable[datetime | None]) -> datetime | None:
    """Where history begins: the model's own start, else the earliest start of what it reads."""
    if own is not None:
        return own
    return min((start for start in upstreams if start is not None), default=None)


def _latest(requested: datetime | None, life: datetime | None) -> datetime:
    starts = [start for start in (requested, life) if start is not None]
    if not starts:
        raise UnknownStartError
    return max(starts)
