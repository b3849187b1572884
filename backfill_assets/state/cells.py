"""Cells as the tables keep them: two columns of epoch seconds, `starts` and `ends`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval import Interval, epoch_of, instant_of

if TYPE_CHECKING:
    from backfill_assets.intervals.interval_set import IntervalSet


def bounds(cell: Interval) -> dict[str, int]:
    """Write an interval as the values of the two columns."""
    return {"starts": epoch_of(cell.start), "ends": epoch_of(cell.end)}


def cell_of(row: sa.Row[Any]) -> Interval:
    """Read the interval of a row."""
    return Interval(instant_of(row.starts), instant_of(row.ends))


def overlapping(table: sa.Table, starts: int, ends: int) -> sa.ColumnElement[bool]:
    """Select the rows whose interval shares an instant with `[starts, ends)`."""
    return sa.and_(table.c.starts < ends, table.c.ends > starts)


def reached(table: sa.Table, cells: IntervalSet) -> sa.ColumnElement[bool]:
    """Select the rows between the first and the last instant of a set that is not empty."""
    return overlapping(table, cells.boundaries[0], cells.boundaries[-1])
