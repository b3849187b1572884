"""Estimate the size of some cells of a table from its log, without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import zone_of
from backfill_assets.warehouse.files.file_spans import entries_of
from backfill_assets.warehouse.log.delta_log import ABSENT, CorruptTableError, head, opened_log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.cadence import Cadence

_SECOND = timedelta(seconds=1)
_BYTES = "size_bytes"


def source_bytes(
    path: str,
    *,
    column: str | None = None,
    cadence: Cadence | None = None,
    cells: IntervalSet | None = None,
    delta_version: int | None = None,
) -> int:
    """Estimate how many bytes of a table lie in some cells; 0 for a table that is not there.

    A file counts by the share of its time span that lies in the cells, as far as its partition or
    its statistics tell the span; else as a whole.

    Args:
        path: of the Delta table.
        column: the time column, or `_cell` of a table of ours; None for one that has none.
        cadence: whose cells they are.
        cells: which; None for the whole table.
        delta_version: at which; None for now.

    Raises:
        CorruptTableError: the log is damaged.
    """
    if head(path) == ABSENT:
        return 0
    log = opened_log(path, delta_version)
    if column is None or cadence is None or cells is None or cadence.unit is Unit.WHOLE:
        return sum(int(file[_BYTES]) for file in entries_of(log, [_BYTES]))
    shares = (
        file[_BYTES] * _share(_span(file, column, cadence.tz), cells) for file in entries_of(log)
    )
    return round(sum(shares))


def bytes_in(path: str, delta_version: int | None = None) -> int:
    """Give the size of a table's files; 0 where there is none, or none that can be read.

    Args:
        path: of the Delta table.
        delta_version: at which; None for now.
    """
    try:
        return source_bytes(path, delta_version=delta_version)
    except CorruptTableError:
        return 0


def _span(file: Mapping[str, Any], column: str, tz: str) -> Interval | None:
    """Give the time that a file's rows span; None where its log entry has no span."""
    exact = file.get(f"partition.{column}")
    first = file.get(f"min.{column}") if exact is None else exact
    last = file.get(f"max.{column}") if exact is None else exact
    if first is None or last is None:
        return None
    return Interval(_instant(first, tz), _after(last, tz))


def _instant(value: Any, tz: str) -> datetime:  # noqa: ANN401 - a date or an instant
    if isinstance(value, datetime):
        instant = value if value.tzinfo else value.replace(tzinfo=UTC)
        return instant.astimezone(UTC).replace(microsecond=0)
    midnight: date = value
    return datetime(midnight.year, midnight.month, midnight.day, tzinfo=zone_of(tz)).astimezone(UTC)


def _after(value: Any, tz: str) -> datetime:  # noqa: ANN401
    if isinstance(value, datetime):
        return _instant(value, tz) + _SECOND
    return _instant(value + timedelta(days=1), tz)


def _share(span: Interval | None, cells: IntervalSet) -> float:
    if span is None:
        return 1.0
    whole = IntervalSet.of([span])
    return (whole & cells).seconds() / whole.seconds()
