"""Grids: the numbered cells of a unit in a zone, in epoch seconds.

Cell `i` is `[boundary(i), boundary(i + 1))`; `index(t)` numbers the cell that holds `t`. Counting
and shifting cells is arithmetic on numbers. A cell's number has no meaning outside of its grid.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Protocol

from backfill_assets.intervals.zones import DAY, local_day, midnight, phases

if TYPE_CHECKING:
    from collections.abc import Iterable

_MONTHS = 12
_WHOLE_END = (date(9999, 1, 1).toordinal() - date(1970, 1, 1).toordinal()) * DAY


class Unit(Enum):
    """How long a cell is. WHOLE is the one cell of a model that is rebuilt as a whole."""

    MINUTE5 = "5 minutes"
    MINUTE15 = "15 minutes"
    MINUTE30 = "30 minutes"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"
    WHOLE = "whole"

    @property
    def shortest(self) -> int:
        """The seconds of its shortest cell, clock changes aside; a month is at least 28 days."""
        return _SHORTEST[self]

    @property
    def is_subday(self) -> bool:
        """Whether several of its cells make a day."""
        return self.shortest < DAY


_SHORTEST = {
    Unit.MINUTE5: 300,
    Unit.MINUTE15: 900,
    Unit.MINUTE30: 1_800,
    Unit.HOUR: 3_600,
    Unit.DAY: DAY,
    Unit.WEEK: 7 * DAY,
    Unit.MONTH: 28 * DAY,
    Unit.YEAR: 365 * DAY,
    Unit.WHOLE: _WHOLE_END,
}


class Grid(Protocol):
    """Cells numbered in order."""

    def index(self, epoch: int) -> int:
        """The number of the cell that holds an epoch second."""
        ...

    def boundary(self, index: int) -> int:
        """The epoch second at which a cell starts."""
        ...


@dataclass(frozen=True, slots=True)
class FixedGrid:
    """Cells of one length: any unit in UTC up to a week, and hours and minutes in any zone."""

    step: int
    phase: int = 0

    def index(self, epoch: int) -> int:
        """The number of the cell that holds an epoch second."""
        return (epoch - self.phase) // self.step

    def boundary(self, index: int) -> int:
        """The epoch second at which a cell starts."""
        return index * self.step + self.phase


@dataclass(frozen=True, slots=True)
class ShiftingGrid:
    """Hours and minutes where clocks once moved by a part of the step.

    The odd piece of time at such a move belongs to the cell before it, which is then longer.
    """

    step: int
    firsts: tuple[int, ...]  # the first boundary after each move
    bases: tuple[int, ...]  # its number

    @classmethod
    def of(cls, step: int, moves: tuple[tuple[int, int], ...]) -> ShiftingGrid:
        """The grid of these `(since, phase)` moves."""
        firsts = [since + (phase - since) % step for since, phase in moves]
        bases = [0]
        for first, (moved_at, _) in zip(firsts, moves[1:], strict=False):
            bases.append(bases[-1] - (first - moved_at) // step)
        return cls(step, tuple(firsts), tuple(bases))

    def index(self, epoch: int) -> int:
        """The number of the cell that holds an epoch second."""
        at = max(bisect_right(self.firsts, epoch) - 1, 0)
        number = self.bases[at] + (epoch - self.firsts[at]) // self.step
        if at + 1 < len(self.bases):
            number = min(number, self.bases[at + 1] - 1)
        return number

    def boundary(self, index: int) -> int:
        """The epoch second at which a cell starts."""
        at = max(bisect_right(self.bases, index) - 1, 0)
        return self.firsts[at] + (index - self.bases[at]) * self.step


@dataclass(frozen=True, slots=True)
class DayGrid:
    """Days, or weeks from Monday, of a zone whose clocks change: 23, 24 or 25 hours a day."""

    zone: str
    days: int = 1

    def index(self, epoch: int) -> int:
        """The number of the cell that holds an epoch second."""
        return (local_day(self.zone, epoch) - 1) // self.days  # day 1 of the calendar is a Monday

    def boundary(self, index: int) -> int:
        """The epoch second at which a cell starts."""
        return midnight(self.zone, index * self.days + 1)


@dataclass(frozen=True, slots=True)
class MonthGrid:
    """Months, or years, of a zone."""

    zone: str
    months: int = 1

    def index(self, epoch: int) -> int:
        """The number of the cell that holds an epoch second."""
        day = date.fromordinal(local_day(self.zone, epoch))
        return (day.year * _MONTHS + day.month - 1) // self.months

    def boundary(self, index: int) -> int:
        """The epoch second at which a cell starts."""
        year, month = divmod(index * self.months, _MONTHS)
        return midnight(self.zone, date(year, month + 1, 1).toordinal())


@dataclass(frozen=True, slots=True)
class WholeGrid:
    """One cell, from 1970 to 9999, for a model that is rebuilt as a whole."""

    def index(self, epoch: int) -> int:
        """The number of the only cell, 0, or of the empty time before or after it."""
        return epoch // _WHOLE_END

    def boundary(self, index: int) -> int:
        """The epoch second at which the cell starts, or ends."""
        return max(0, min(index, 1)) * _WHOLE_END


@cache
def grid_of(unit: Unit, zone: str) -> Grid:
    """The cells of a unit, cut on the local clocks of a zone."""
    grid: Grid
    if unit is Unit.WHOLE:
        grid = WholeGrid()
    elif unit.is_subday:
        moves = phases(zone, unit.shortest)
        grid = (
            FixedGrid(unit.shortest, moves[0][1])
            if len(moves) == 1
            else ShiftingGrid.of(unit.shortest, moves)
        )
    elif unit in (Unit.MONTH, Unit.YEAR):
        grid = MonthGrid(zone, _MONTHS if unit is Unit.YEAR else 1)
    elif zone == "UTC":
        grid = FixedGrid(unit.shortest, 4 * DAY if unit is Unit.WEEK else 0)
    else:
        grid = DayGrid(zone, unit.shortest // DAY)
    return grid


def boundary_from(grid: Grid, epoch: int) -> int:
    """The first boundary at or after an instant."""
    number = grid.index(epoch)
    boundary = grid.boundary(number)
    return boundary if boundary == epoch else grid.boundary(number + 1)


def is_on_grid(grid: Grid, boundaries: Iterable[int]) -> bool:
    """Whether all of these are boundaries of cells of one length; False for other grids, unchecked."""
    if not isinstance(grid, FixedGrid):
        return False
    if grid.phase:
        boundaries = (each - grid.phase for each in boundaries)
    return not any(map(grid.step.__rmod__, boundaries))
