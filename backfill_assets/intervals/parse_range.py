"""Read a range that a person asked for: check, round and clip it, with a note on what changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.instants import When, end_at, read, start_at
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import life_text, ranges_text

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence


class ReversedRangeError(BackfillAssetsError):
    """A range ends where it starts, or before."""

    def __init__(self, start: When, end: When) -> None:
        super().__init__(
            f"the range {start} to {end} holds no time: it ends where it starts, or before; "
            "give the earlier bound first (a date as end is meant with its day)"
        )


class OutsideLifeError(BackfillAssetsError):
    """A range lies wholly before the model's start, or at or after its end."""

    def __init__(self, asked: Interval, cadence: Cadence) -> None:
        cells = ranges_text(cadence, cadence.snap_out(asked))
        super().__init__(
            f"the range {cells} lies wholly outside the model's life, which is "
            f"{life_text(cadence)}; ask for a range within it"
        )
        self.asked = asked


@dataclass(frozen=True, slots=True)
class RequestedRange:
    """A range that was asked for, in whole cells of the model's life.

    Attributes:
        interval: the resulting range. Instants closer together than one cell stay as they were asked.
        asked: what was asked for, neither rounded nor clipped: the end that `end_bounded` respects.
        note: what was changed about the request, in words, or None.
    """

    interval: Interval
    asked: Interval
    note: str | None = None


def parse_interval(start: When, end: When, cadence: Cadence) -> Interval:
    """Both bounds as instants, neither rounded nor clipped.

    Raises:
        InstantFormatError: a bound is neither a date nor an instant with its offset.
        ReversedRangeError: the end is not after the start.
    """
    first, last = start_at(start, cadence.tz), end_at(end, cadence.tz)
    if last <= first:
        raise ReversedRangeError(start, end)
    return Interval(first, last)


def parse_range(
    start: When | None, end: When | None, cadence: Cadence, *, due: datetime | None = None
) -> RequestedRange:
    """A range in the model's zone, rounded outward to cells and clipped to the model's life.

    Args:
        start: None: where the model's life begins.
        end: None: where its life ends, or else `due`.
        cadence: the model's cells and life.
        due: the boundary up to which cells are due, which the note respects; None: it does not.

    Raises:
        InstantFormatError: a bound is neither a date nor an instant with its offset.
        ReversedRangeError: the end is not after the start.
        OutsideLifeError: nothing of it lies in the model's life.
    """
    request = _with_bounds(start, end, cadence, due)
    within = _clipped(request, cadence)
    if (
        end is not None
        and _is_instant(end)
        and not _holds_a_cell(Interval(within.start, request.end), cadence)
    ):
        note = f"shorter than one cell of one {cadence.unit.value}, so it requires none"
        return RequestedRange(within, request, note)
    cells = Interval(cadence.floor(request.start), cadence.ceil(request.end))
    meant = _clipped(cells, cadence)
    notes: list[str] = []
    if cells != request:
        notes.append(f"rounded outward to whole cells of one {cadence.unit.value}")
    if meant != cells:
        notes.append("clipped to the model's life")
    if due is not None and meant.start >= due:
        return RequestedRange(meant, request, "no cell of it is due yet")
    if due is not None and meant.end > due:
        notes.append("without cells that are not due yet")
        return RequestedRange(meant, request, _note(cadence, notes, Interval(meant.start, due)))
    return RequestedRange(meant, request, _note(cadence, notes, meant))


def _with_bounds(
    start: When | None, end: When | None, cadence: Cadence, due: datetime | None
) -> Interval:
    """Take the bounds of the model's life for those that were not asked for."""
    if start is not None and end is not None:
        return parse_interval(start, end, cadence)
    begins = cadence.start or cadence.ceil(WHOLE_CELL.start)
    first = begins if start is None else start_at(start, cadence.tz)
    one = cadence.shift(cadence.floor(first), 1)
    over = cadence.end or max(one, due or one)
    last = over if end is None else end_at(end, cadence.tz)
    if last <= first:  # it lies before the life, or after it
        asked = Interval(last - cadence.shortest_cell(last), last)
        raise OutsideLifeError(Interval(first, one) if end is None else asked, cadence)
    return Interval(first, last)


def _note(cadence: Cadence, notes: list[str], cells: Interval) -> str | None:
    span = f": {ranges_text(cadence, IntervalSet.of([cells]))}"
    return " and ".join(notes) + span if notes else None


def _clipped(request: Interval, cadence: Cadence) -> Interval:
    start = max(request.start, cadence.start or request.start)
    end = min(request.end, cadence.end or request.end)
    if end <= start:
        raise OutsideLifeError(request, cadence)
    return Interval(start, end)


def _holds_a_cell(span: Interval, cadence: Cadence) -> bool:
    return span.duration >= cadence.shortest_cell(span.start)


def _is_instant(when: When) -> bool:
    return isinstance(read(when), datetime)
