"""The rule for a time column: each of its values has to say in which cell of a grid a row lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.grid import FixedGrid, Unit

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence

_OF_DAYS = ("date", "timestamp", "timestamp_ntz")


def require_time_column(column: str, dtype: str, cadence: Cadence) -> None:
    """Refuse a time column whose values do not say in which cell a row lies.

    Args:
        column: its name, for the message.
        dtype: its type, as Spark writes it.
        cadence: the grid.

    Raises:
        DeclarationError: the column is too coarse for the grid, or no time at all.
    """
    expected = _expected(dtype, cadence)
    if expected:
        raise DeclarationError(
            found=f"time column '{column}' is {dtype}, on cells of one {cadence.unit.value} in "
            f"{cadence.tz}",
            expected=expected,
        )


def _expected(dtype: str, cadence: Cadence) -> str:
    if cadence.unit is Unit.WHOLE:
        return ""
    if not cadence.unit.is_subday:
        return "" if dtype in _OF_DAYS else "a DATE or TIMESTAMP column"
    if dtype != "timestamp":
        return "a TIMESTAMP column, or cells of a day or more"
    if not isinstance(cadence.grid, FixedGrid):
        return "a zone whose clocks move by whole cells; declare the cadence in UTC"
    return ""
