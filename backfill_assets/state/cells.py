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


def joined_runs(
    cells: sa.Select[*tuple[Any, ...]], *same: str, by: str | None = None
) -> sa.Select[*tuple[Any, ...]]:
    """Join touching cells that are equal in some columns, in the database: ten years are one row.

    Args:
        cells: their `starts` and `ends`, with these columns.
        same: the columns.
        by: another one; only cells that are equal in it are looked at together.

    Returns:
        The columns of each run of cells, and its number, `run`.
    """
    given = cells.selected_columns

    def before(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.lag(column).over(
            partition_by=None if by is None else given[by], order_by=given.starts
        )

    goes_on = sa.and_(
        before(given.ends) == given.starts,
        *(before(given[name]).is_not_distinct_from(given[name]) for name in same),
    )
    begun = cells.add_columns(sa.case((goes_on, 0), else_=1).label("begins")).subquery()
    number = sa.func.sum(begun.c.begins).over(
        partition_by=None if by is None else begun.c[by], order_by=begun.c.starts
    )
    numbered = sa.select(begun, number.label("run")).subquery().c
    run = [*([] if by is None else [numbered[by]]), numbered.run]
    edges = sa.func.min(numbered.starts).label("starts"), sa.func.max(numbered.ends).label("ends")
    shared = (sa.func.min(numbered[name]).label(name) for name in same)
    return sa.select(*run, *edges, *shared).group_by(*run)
