"""Comparisons over time that straddle the boundary of a partial range: one side is new, the other old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from backfill_assets.intervals.zones import local_day

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.intervals.interval_set import IntervalSet

_MONTHS = 12


@dataclass(frozen=True, slots=True)
class Straddling:
    """Comparisons of which not all is of one sort.

    Attributes:
        mixed: months, as ``2024-03``, of which some cells are new and others old.
        months: pairs of a month and the one before it.
        years: pairs of a month and the same one a year before.
    """

    mixed: tuple[str, ...] = ()
    months: tuple[tuple[str, str], ...] = ()
    years: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.mixed or self.months or self.years)


def straddling(new: IntervalSet, old: IntervalSet, zone: str) -> Straddling:
    """Find the months that compare new cells with old ones.

    Args:
        new: the cells that changed.
        old: the published cells that stay as they were.
        zone: by whose clock months begin.
    """
    fresh, kept = set(_months(new, zone)), set(_months(old, zone))
    all_months, mixed = fresh | kept, fresh & kept
    return Straddling(
        mixed=tuple(_text(month) for month in sorted(mixed)),
        months=_pairs(all_months, fresh, mixed, 1),
        years=_pairs(all_months, fresh, mixed, _MONTHS),
    )


def _pairs(
    all_months: set[int], fresh: set[int], mixed: set[int], back: int
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (_text(month), _text(month - back))
        for month in sorted(all_months)
        if month - back in all_months
        if {month, month - back} & mixed or (month in fresh) != (month - back in fresh)
    )


def _months(cells: IntervalSet, zone: str) -> Iterator[int]:
    """Count the months that the cells touch, from year 0 on."""
    for start, end in cells.pairs():
        first, last = (date.fromordinal(local_day(zone, at)) for at in (start, end - 1))
        yield from range(_number(first), _number(last) + 1)


def _number(day: date) -> int:
    return day.year * _MONTHS + day.month - 1


def _text(month: int) -> str:
    return f"{month // _MONTHS:04d}-{month % _MONTHS + 1:02d}"
