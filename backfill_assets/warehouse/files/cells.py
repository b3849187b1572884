"""The hidden column `_cell`, which holds the start of each row's cell, and its Spark SQL.

It is a DATE (local, in the model's zone) for days and coarser cells, a TIMESTAMP (UTC) for finer ones,
and one constant date for a table that is rebuilt as a whole. Every table of ours has it, so a batch
replaces, aggregates and prunes by one column whatever its model's time column is.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import FixedGrid, Unit
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import EPOCH_ORDINAL, midnight, zone_of
from backfill_assets.models.column import CELL_COLUMN, quoted
from backfill_assets.models.time_column import require_time_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.intervals.cadence import Cadence

_EPOCH_DAY = date(1970, 1, 1)
_TRUNCATED = {Unit.WEEK: "week", Unit.MONTH: "month", Unit.YEAR: "year"}


def cell_type(cadence: Cadence) -> str:
    """Name the Spark type of `_cell` on this grid."""
    return "timestamp" if cadence.unit.is_subday else "date"


def cell_expression(column: str, dtype: str, cadence: Cadence) -> str:
    """Write Spark SQL that gives the `_cell` of a row from its time column.

    Raises:
        DeclarationError: the column is too coarse for the grid, or no time at all.
    """
    require_time_column(column, dtype, cadence)
    time, grid = quoted(column), cadence.grid
    if cadence.unit is Unit.WHOLE:
        return f"DATE'{_EPOCH_DAY}'"
    if cadence.unit.is_subday and isinstance(grid, FixedGrid):
        seconds = f"unix_seconds({time})"
        return f"timestamp_seconds({seconds} - pmod({seconds} - {grid.phase}, {grid.step}))"
    if dtype == "timestamp":
        time = f"to_date(from_utc_timestamp({time}, '{cadence.tz}'))"
    elif dtype == "timestamp_ntz":
        time = f"to_date({time})"
    part = _TRUNCATED.get(cadence.unit)
    return f"trunc({time}, '{part}')" if part else time


def block_expression(cadence: Cadence) -> str:
    """Write Spark SQL that gives the block of a row from its `_cell`: the local day, as a text.

    Cells that are finer than a day share the files of their block.
    """
    return f"date_format(from_utc_timestamp({CELL_COLUMN}, '{cadence.tz}'), 'yyyy-MM-dd')"


def block_of(cadence: Cadence, text: str) -> str:
    """Give the block of a cell that is finer than a day, as `block_expression` does."""
    instant = datetime.fromisoformat(text)
    return instant.astimezone(zone_of(cadence.tz)).date().isoformat()


def cells_predicate(cadence: Cadence, cells: Iterable[Interval]) -> str:
    """Write Spark SQL that keeps the rows of these cells, as few contiguous ranges as can be.

    A table that is rebuilt as a whole has only one cell, so any interval means all of it.
    """
    if cadence.unit is Unit.WHOLE:
        return f"{CELL_COLUMN} = DATE'{_EPOCH_DAY}'"
    return _any_of(
        f"{CELL_COLUMN} >= {_literal(cadence, span.start)} "
        f"AND {CELL_COLUMN} < {_literal(cadence, span.end)}"
        for span in IntervalSet.of(cells)
    )


def time_predicate(column: str, dtype: str, cadence: Cadence, cells: Iterable[Interval]) -> str:
    """Write Spark SQL that keeps the rows of these cells by a source's own time column.

    Raises:
        DeclarationError: the column is neither a DATE nor a TIMESTAMP.
    """
    if cadence.unit is Unit.WHOLE:
        return "TRUE"
    literals = {"date": _date, "timestamp": _timestamp, "timestamp_ntz": _wall_clock}
    if dtype not in literals:
        require_time_column(column, dtype, cadence)
    name, literal = quoted(column), literals[dtype]
    return _any_of(
        f"{name} >= {literal(cadence, span.start)} AND {name} < {literal(cadence, span.end)}"
        for span in IntervalSet.of(cells)
    )


def cell_number(cadence: Cadence, cell: Interval) -> int:
    """Number a cell by its start: days since 1970 for dates, seconds for timestamps."""
    if cadence.unit is Unit.WHOLE:
        return 0
    if cadence.unit.is_subday:
        return epoch_of(cell.start)
    return (cell.start.astimezone(zone_of(cadence.tz)).date() - _EPOCH_DAY).days


def number_expression(cadence: Cadence, cell: str = CELL_COLUMN) -> str:
    """Write Spark SQL that gives `cell_number` of a row (numbers survive any client's zone)."""
    number = f"unix_seconds({cell})" if cadence.unit.is_subday else f"unix_date({cell})"
    return f"CAST({number} AS BIGINT)"


def number_text(cadence: Cadence, number: int) -> str:
    """Write a cell's number as the date or instant that it stands for."""
    if cadence.unit.is_subday:
        return instant_of(number).isoformat()
    return (_EPOCH_DAY + timedelta(days=number)).isoformat()


def cell_text(cadence: Cadence, cell: Interval) -> str:
    """Write a cell's `_cell` as our tables' logs have it: a local date, or an instant in UTC."""
    if cadence.unit is Unit.WHOLE:
        return _EPOCH_DAY.isoformat()
    return text_at(cadence, cell.start)


def text_at(cadence: Cadence, instant: datetime) -> str:
    """Write the `_cell` of a cell that would start at this instant."""
    if cadence.unit.is_subday:
        return instant_text(instant)
    return instant.astimezone(zone_of(cadence.tz)).date().isoformat()


def instant_text(instant: datetime) -> str:
    """Write an instant as `cell_text` does."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def cell_of_number(cadence: Cadence, number: int) -> Interval:
    """Give the cell that `cell_number` numbers so."""
    if cadence.unit is Unit.WHOLE:
        return WHOLE_CELL
    epoch = number if cadence.unit.is_subday else midnight(cadence.tz, number + EPOCH_ORDINAL)
    start = instant_of(epoch)
    return Interval(start, cadence.next(start))


def cell_of_text(cadence: Cadence, text: str) -> Interval:
    """Give the cell whose `_cell` Spark writes so, in a session of ours (UTC)."""
    if cadence.unit.is_subday:
        return cell_of_number(cadence, epoch_of(datetime.fromisoformat(text).replace(tzinfo=UTC)))
    return cell_of_number(cadence, (date.fromisoformat(text) - _EPOCH_DAY).days)


def _literal(cadence: Cadence, instant: datetime) -> str:
    return (_timestamp if cadence.unit.is_subday else _date)(cadence, instant)


def _date(cadence: Cadence, instant: datetime) -> str:
    return f"DATE'{instant.astimezone(zone_of(cadence.tz)).date().isoformat()}'"


def _timestamp(_: Cadence, instant: datetime) -> str:
    return f"TIMESTAMP'{instant:%Y-%m-%d %H:%M:%S}+00:00'"


def _wall_clock(cadence: Cadence, instant: datetime) -> str:
    """Write the midnight of a day, which a row may name also where clocks skip it."""
    return f"TIMESTAMP_NTZ'{instant.astimezone(zone_of(cadence.tz)):%Y-%m-%d} 00:00:00'"


def _any_of(ranges: Iterable[str]) -> str:
    return " OR ".join(f"({condition})" for condition in ranges) or "FALSE"
