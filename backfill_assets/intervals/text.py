"""Write counts as text, and interval sets: runs of partition keys, both ends included, with their counts.

Besides, the last line of what a program said.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.partition_keys import key_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval_set import IntervalSet


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: ``1 batch``, ``2,000 batches``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_of(names: Iterable[str], limit: int) -> str:
    """List some names, and count the rest: ``a, b and 3 more``."""
    listed = [*names]
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return f"{', '.join(listed[:limit])}{more}"


def last_line(text: str) -> str:
    """The last line of a text; empty if it has none."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def ranges_text(cadence: Cadence, span: IntervalSet, limit: int = 5) -> str:
    """The cells that overlap the span: `2024-01-01..2024-01-31 (31), 2024-02-05`.

    Args:
        cadence: whose cells.
        span: which of them.
        limit: how many runs are written out; the rest is counted.
    """
    cells = cadence.snap_out(span)
    if not cells:
        return "none"
    runs = [_run(cadence, start, end) for start, end in islice(cells.pairs(), limit)]
    if len(cells) > limit:
        shown = sum(
            cadence.count(Interval(instant_of(start), instant_of(end)))
            for start, end in islice(cells.pairs(), limit)
        )
        more = len(cells) - limit
        runs.append(
            f"and {more} more {'range' if more == 1 else 'ranges'} ({cadence.count(cells) - shown})"
        )
    return ", ".join(runs)


def life_text(cadence: Cadence) -> str:
    """The cells of a cadence's life, both ends included: `2024-01-01..2024-01-31`, `2024-01-01 and later`."""
    if cadence.start is None:
        return "any time" if cadence.end is None else f"before {minute_text(cadence.end)}"
    first = key_at(epoch_of(cadence.start), cadence.unit, cadence.tz)
    if cadence.end is None:
        return f"{first} and later"
    return _run(cadence, epoch_of(cadence.start), epoch_of(cadence.end))


def ranges_list(cadence: Cadence, span: IntervalSet) -> list[str]:
    """Every run of cells that overlap the span, for programs: `["2024-01-01..2024-01-31", "2024-02-05"]`.

    Args:
        cadence: whose cells.
        span: which of them.
    """
    return [_ends(cadence, start, end) for start, end in cadence.snap_out(span).pairs()]


def _run(cadence: Cadence, start: int, end: int) -> str:
    ends, count = (
        _ends(cadence, start, end),
        cadence.grid.index(end - 1) - cadence.grid.index(start),
    )
    return f"{ends} ({count + 1})" if count else ends


def _ends(cadence: Cadence, start: int, end: int) -> str:
    grid = cadence.grid
    first, last = grid.index(start), grid.index(end - 1)
    name = key_at(start, cadence.unit, cadence.tz)
    if first == last:
        return name
    return f"{name}..{key_at(grid.boundary(last), cadence.unit, cadence.tz)}"
