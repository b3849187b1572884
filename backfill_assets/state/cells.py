"""Cells as the tables keep them: two columns of epoch seconds, `starts` and `ends`."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet


def bounds(cell: Interval) -> dict[str, int]:
    """Write an interval as the values of the two columns."""
    return {"starts": epoch_of(cell.start), "ends": epoch_of(cell.end)}


def cell_of(row: sa.Row[Any]) -> Interval:
    """Read the interval of a row."""
    return Interval(instant_of(row.starts), instant_of(row.ends))


def stretches_of(row: sa.Row[Any]) -> IntervalSet:
    """Read the cells of a batch: from its first to its last, unless others lie between them."""
    return IntervalSet.of([cell_of(row)]) if row.stretches is None else row.stretches


def reached(table: sa.Table, cells: IntervalSet) -> sa.ColumnElement[bool]:
    """Select the rows between the first and the last instant of a set that is not empty."""
    first, last = cells.boundaries[0], cells.boundaries[-1]
    return sa.and_(table.c.starts < last, table.c.ends > first)
