"""A cadence: the grid of cells that a model lives on, its life, and when cells become due.

Authors write Hourly, Daily, Weekly, Monthly, Yearly or Whole. A date as start is local midnight of
that day; a date as end is meant with its whole day; an instant as end is exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals.cron import cron_of
from backfill_assets.intervals.grid import Grid, Unit, boundary_from, grid_of, is_on_grid
from backfill_assets.intervals.instants import When, end_at, minute_text, start_at
from backfill_assets.intervals.interval import (
    Interval,
    epoch_of,
    in_utc,
    inner_pair,
    instant_of,
    outer_pair,
)
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.partition_keys import key_at, start_of_key
from backfill_assets.intervals.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE_CELL = Interval(datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
"""The one cell of a model that is rebuilt as a whole."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """The grid that a model lives on.

    Cells are cut on the local clocks of `tz` and are UTC inside: a day in Berlin can have 23 or 25
    hours. `start` and `end` bound the model's history and are rounded outward to whole cells, so
    the first and the last cell are never half ones.

    Attributes:
        unit: how long a cell is.
        tz: the model's zone, a name of the tz database.
        start: where history begins; None: not known yet.
        end: where history ends, exclusive; None: it goes on.
        cron: when work becomes due; None: as soon as a cell is over.
        cron_tz: the zone of the cron's clocks, `tz` if None.

    Raises:
        UnknownZoneError: a zone is unknown.
        DeclarationError: the cron can't be read.
        DeclarationError: the end is not after the start.
    """

    unit: Unit
    tz: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    cron: str | None = None
    cron_tz: str | None = None

    def __post_init__(self) -> None:
        zone_of(self.tz)
        if self.cron is not None:
            cron_of(self.cron, self.cron_tz or self.tz)
        start = in_utc(self.start) if self.start else None
        end = in_utc(self.end) if self.end else None
        if start and end and end <= start:
            raise DeclarationError(
                found=f"the cadence starts at {minute_text(start)} and ends at {minute_text(end)}, "
                "which is not after it",
                do="give an end after the start (a date as end is meant with its day)",
            )
        object.__setattr__(self, "start", self.floor(start) if start else None)
        object.__setattr__(self, "end", self.ceil(end) if end else None)

    @property
    def grid(self) -> Grid:
        """The numbered cells, in epoch seconds, for arithmetic over many of them."""
        return grid_of(self.unit, self.tz)

    def floor(self, instant: datetime) -> datetime:
        """The start of the cell that holds an instant."""
        grid = self.grid
        return instant_of(grid.boundary(grid.index(epoch_of(instant))))

    def ceil(self, instant: datetime) -> datetime:
        """The first boundary at or after an instant."""
        floor = self.floor(instant)
        return floor if floor == instant else self.next(instant)

    def next(self, instant: datetime) -> datetime:
        """The first boundary after an instant: the end of the cell that holds it."""
        return self.shift(instant, 1)

    def shift(self, boundary: datetime, cells: int) -> datetime:
        """The boundary that many cells later, or earlier when negative."""
        grid = self.grid
        return instant_of(grid.boundary(grid.index(epoch_of(boundary)) + cells))

    def shortest_cell(self, instant: datetime) -> timedelta:
        """The least time that holds a cell there: a local day of 23 hours is a whole one."""
        cell = self.next(instant) - self.floor(instant)
        return min(cell, timedelta(seconds=self.unit.shortest))

    def cells(self, span: IntervalSet | Interval) -> Iterator[Interval]:
        """Every cell that overlaps the span, once, in order."""
        grid = self.grid
        for first, last in self._numbers(span):
            start = instant_of(grid.boundary(first))
            for number in range(first, last):
                end = instant_of(grid.boundary(number + 1))
                if start < end:  # a calendar day that a zone skipped altogether has no cell
                    yield Interval(start, end)
                start = end

    def count(self, span: IntervalSet | Interval) -> int:
        """How many cells overlap the span, without walking them."""
        return sum(last - first for first, last in self._numbers(span))

    def snap_out(self, span: IntervalSet | Interval) -> IntervalSet:
        """Rounded outward: every cell that overlaps the span."""
        if isinstance(span, IntervalSet) and is_on_grid(self.grid, span.boundaries):
            return span
        to = self.grid.boundary
        return IntervalSet.of_pairs((to(first), to(last)) for first, last in self._numbers(span))

    def snap_in(self, span: IntervalSet | Interval) -> IntervalSet:
        """Rounded inward: only the cells that lie wholly in the span."""
        grid = self.grid
        pairs = span.pairs() if isinstance(span, IntervalSet) else inner_pair(span)
        return IntervalSet.of_pairs(
            (boundary_from(grid, start), grid.boundary(grid.index(end))) for start, end in pairs
        )

    def names_alike(self, other: Cadence) -> bool:
        """Whether a key names one cell in both; hours of two zones are the same cells under other keys."""
        return self.grid == other.grid and (self.unit is Unit.WHOLE or self.tz == other.tz)

    def key(self, cell: Interval) -> str:
        """The partition key of a cell, letter for letter Dagster's.

        Raises:
            RequestError: the interval is not exactly one cell.
        """
        if self.floor(cell.start) != cell.start or self.next(cell.start) != cell.end:
            raise RequestError(
                found=f"{cell} is not exactly one cell of one {self.unit.value} in {self.tz}",
                do="take cells from cadence.cells(...)",
            )
        return key_at(epoch_of(cell.start), self.unit, self.tz)

    def cell(self, key: str) -> Interval:
        """The cell of a partition key.

        Raises:
            PartitionKeyError: no cell has exactly this key.
        """
        start = instant_of(start_of_key(key, self.unit, self.tz))
        return Interval(start, self.next(start))

    def tick(self, now: datetime) -> datetime:
        """When work last became due: the last cron tick, or without a cron the last boundary."""
        if self.cron is None:
            return self.floor(now)
        return cron_of(self.cron, self.cron_tz or self.tz).floor(now)

    def due_at(self, boundary: datetime) -> datetime:
        """When the cell that ends at a boundary becomes due: then, or at the first cron tick from then on."""
        if self.cron is None:
            return boundary
        return cron_of(self.cron, self.cron_tz or self.tz).next(boundary - timedelta(seconds=1))

    def due(self, now: datetime) -> datetime:
        """The boundary up to which cells are due: the last tick, floored to the unit.

        A model that is rebuilt as a whole is always due.
        """
        return WHOLE_CELL.end if self.unit is Unit.WHOLE else self.floor(self.tick(now))

    def _numbers(self, span: IntervalSet | Interval) -> Iterator[tuple[int, int]]:
        """Half-open runs of cell numbers that overlap the span, no number twice."""
        index, seen = self.grid.index, None
        for start, end in span.pairs() if isinstance(span, IntervalSet) else outer_pair(span):
            first, last = index(start), index(end - 1) + 1
            if seen is not None and first < seen:
                first = seen
            if first < last:
                yield first, last
                seen = last


def Hourly(  # noqa: N802 - reads as the value it makes, in a model's declaration
    start: When | None = None,
    tz: str = "UTC",
    cron: str | None = None,
    end: When | None = None,
    cron_tz: str | None = None,
) -> Cadence:
    """Hours, the repeated and the skipped hour of a clock change included: 25 or 23 in a day."""
    return _cadence(Unit.HOUR, tz, (start, end), cron, cron_tz)


def Daily(  # noqa: N802
    start: When | None = None,
    tz: str = "UTC",
    cron: str | None = None,
    end: When | None = None,
    cron_tz: str | None = None,
) -> Cadence:
    """Local days, of 23 to 25 hours."""
    return _cadence(Unit.DAY, tz, (start, end), cron, cron_tz)


def Weekly(  # noqa: N802
    start: When | None = None,
    tz: str = "UTC",
    cron: str | None = None,
    end: When | None = None,
    cron_tz: str | None = None,
) -> Cadence:
    """Local weeks from Monday."""
    return _cadence(Unit.WEEK, tz, (start, end), cron, cron_tz)


def Monthly(  # noqa: N802
    start: When | None = None,
    tz: str = "UTC",
    cron: str | None = None,
    end: When | None = None,
    cron_tz: str | None = None,
) -> Cadence:
    """Local calendar months."""
    return _cadence(Unit.MONTH, tz, (start, end), cron, cron_tz)


def Yearly(  # noqa: N802
    start: When | None = None,
    tz: str = "UTC",
    cron: str | None = None,
    end: When | None = None,
    cron_tz: str | None = None,
) -> Cadence:
    """Local calendar years."""
    return _cadence(Unit.YEAR, tz, (start, end), cron, cron_tz)


def Whole(cron: str | None = None, tz: str = "UTC") -> Cadence:  # noqa: N802
    """One cell, `WHOLE_CELL`, for a model that is rebuilt as a whole."""
    return Cadence(Unit.WHOLE, tz, cron=cron)


def _cadence(
    unit: Unit,
    tz: str,
    life: tuple[When | None, When | None],
    cron: str | None,
    cron_tz: str | None,
) -> Cadence:
    start, end = life
    return Cadence(
        unit,
        tz,
        start=None if start is None else start_at(start, tz),
        end=None if end is None else end_at(end, tz),
        cron=cron,
        cron_tz=cron_tz,
    )
