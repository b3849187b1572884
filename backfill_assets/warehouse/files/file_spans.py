"""Derive the time span of a Delta file's rows from its partition or its statistics in the log."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import local_day, midnight, zone_of
from backfill_assets.warehouse.log.delta_log import delta_json_schema, name_in_files, opened_log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import pyarrow as pa
    from deltalake import DeltaTable

    from backfill_assets.intervals.cadence import Cadence

_LAST_YEAR = WHOLE_CELL.end.year - 1
_LAST_SECOND = WHOLE_CELL.end - timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class File:
    """The log's entry on one file.

    Attributes:
        first: the instant of its earliest row; None where the log does not say.
        last: the instant of its latest row.
        rows: how many rows have an event time; None where the log does not say.
        timeless: no row has an event time, so none belongs to any cell.
    """

    first: datetime | None = None
    last: datetime | None = None
    rows: int | None = None
    timeless: bool = False

    def cells(self, cadence: Cadence) -> IntervalSet | None:
        """Give the cells from its earliest to its latest row; None where they are unknown.

        All rows of a table that is read as a whole lie in its one cell, those without a time included.
        """
        if cadence.unit is Unit.WHOLE:
            return IntervalSet.of([WHOLE_CELL])
        if self.timeless or self.first == WHOLE_CELL.end:
            return IntervalSet.empty()
        if self.first is None or self.last is None:
            return None
        last = min(self.last, _LAST_SECOND)  # no grid need know what comes after the last cell
        return IntervalSet.of([Interval(cadence.floor(self.first), cadence.next(last))])


@dataclass(frozen=True, slots=True)
class CellsRead:
    """The cells of a table that are read, by its time column.

    Attributes:
        column: the time column.
        cadence: of the table.
        cells: which are read.
    """

    column: str
    cadence: Cadence
    cells: IntervalSet

    @property
    def statistics(self) -> tuple[str, ...]:
        """What `may_hold` looks at of a file's entry in the log, flattened, if it is there."""
        column = self.column
        return "num_records", f"null_count.{column}", f"min.{column}", f"max.{column}"

    def may_hold(self, entry: Mapping[str, Any]) -> bool:
        """Whether a file may hold rows of these cells."""
        file = file_of(entry, self.column, self.cadence)
        file_cells, hull = file.cells(self.cadence), self.cells.hull()
        if file_cells is None or file_cells & self.cells:
            return True
        # Instants beyond these are known as the first or the last one.
        return hull is not None and (
            (file.first == WHOLE_CELL.start and hull.start < WHOLE_CELL.start)
            or (file.last == WHOLE_CELL.end and hull.end > WHOLE_CELL.end)
        )


def logged_type(path: str, delta_version: int, column: str) -> tuple[str, str]:
    """Give the name that a column has in the log's entries, and its type.

    Raises:
        CorruptTableError: the log is damaged.
    """
    return _in_log(opened_log(path, delta_version), column)


def _in_log(log: DeltaTable, column: str) -> tuple[str, str]:
    for each in delta_json_schema(log):
        if each["name"] == column:
            return name_in_files(each), str(each["type"])
    return column, ""


def logged_file(action: Mapping[str, Any], *, column: str, dtype: str, cadence: Cadence) -> File:
    """Read the entry of an added or removed file."""
    stats, partition = _statistics(action.get("stats")), action.get("partitionValues") or {}
    entry: dict[str, Any] = {"num_records": stats.get("numRecords")}
    minimum, maximum, nulls = (
        (stats.get(what) or {}).get(column) for what in ("minValues", "maxValues", "nullCount")
    )
    try:
        if column in partition:
            exact = partition[column]
            entry[f"partition.{column}"] = _read(exact, dtype) if exact else None
        elif minimum is not None and maximum is not None:
            entry[f"min.{column}"] = _read(minimum, dtype)
            entry[f"max.{column}"] = _read(maximum, dtype)
    except ValueError:  # not a time in the log's form, so the cells are unknown
        return File()
    file = file_of({**entry, f"null_count.{column}": nulls}, column, cadence)
    deleted = _deleted(action)
    if deleted and nulls:  # which of both are the same rows, the log does not say
        return replace(file, rows=None)
    return replace(file, rows=_less(file.rows, deleted))


def rows_of(action: Mapping[str, Any]) -> int | None:
    """Read how many rows an added or removed file has; None where the log does not say."""
    return _less(_statistics(action.get("stats")).get("numRecords"), _deleted(action))


def rows_at(path: str, delta_version: int) -> int | None:
    """Read how many rows a table has at one delta_version; None where the log does not say.

    Raises:
        CorruptTableError: the log is damaged.
    """
    if may_delete_within_files(path, delta_version):
        return None
    counts: list[int | None] = [
        entry.get("num_records") for entry in logged_files(path, delta_version)
    ]
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if len(numbers) == len(counts) else None


def added_files(
    path: str, delta_version: int, column: str, cadence: Cadence
) -> Iterator[tuple[str, File]]:
    """Read every file that a table has at one delta_version, with its name in the log.

    Their rows are counted as the files hold them: those that deletion vectors delete count as well.

    Raises:
        CorruptTableError: the log is damaged.
    """
    log = opened_log(path, delta_version)
    name, _ = _in_log(log, column)
    for entry in entries_of(log):
        yield unquote(entry["path"]), file_of(entry, name, cadence)


def may_delete_within_files(path: str, delta_version: int) -> bool:
    """Whether files of a table may hold rows that deletion vectors delete, so that it has fewer than they hold.

    Raises:
        CorruptTableError: the log is damaged.
    """
    features = opened_log(path, delta_version).protocol().reader_features
    return "deletionVectors" in (features or ())


def logged_files(path: str, delta_version: int) -> list[dict[str, Any]]:
    """Read the log's entry on every file that a table has at one delta_version, flattened.

    Raises:
        CorruptTableError: the log is damaged.
    """
    return entries_of(opened_log(path, delta_version))


def entries_of(log: DeltaTable, columns: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Give a log's entry on each file, flattened.

    Args:
        log: of a table, at a pin.
        columns: what is read of each entry, if it is there; None for all of it.
    """
    import pyarrow as pa  # noqa: PLC0415 - only readers of a table need it

    actions = log.get_add_actions(flatten=True)
    names = [name for name in actions.schema.names if columns is None or name in columns]
    read = pa.RecordBatchReader.from_stream(actions.select(names)).read_all()
    try:
        return read.to_pylist()
    except OverflowError:  # a time that Python does not know, such as one after the year 9999
        return pa.table([_known(column) for column in read.columns], names=names).to_pylist()


def _known(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give times that Python does not know as the first or the last one that it knows."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    dtype = column.type
    if pa.types.is_date32(dtype):
        ends = (date.min, date.max)
    elif pa.types.is_timestamp(dtype) and dtype.unit == "us":
        zone = UTC if dtype.tz else None
        ends = (datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone))
    else:
        return column
    first, last = (pa.scalar(end, dtype) for end in ends)
    early = pc.call_function("less", [column, first])
    late = pc.call_function("greater", [column, last])
    within = pc.call_function("if_else", [late, last, column])
    return pc.call_function("if_else", [early, first, within])


def file_of(entry: Mapping[str, Any], column: str, cadence: Cadence) -> File:
    """Read one of these entries: when its rows lie, by a time column."""
    rows, nulls = entry.get("num_records"), entry.get(f"null_count.{column}")
    if f"partition.{column}" in entry:
        exact = entry[f"partition.{column}"]
        if exact is None:
            return File(timeless=True)
        return File(*_instants(exact, cadence), rows)
    first, last = entry.get(f"min.{column}"), entry.get(f"max.{column}")
    if first is None and last is None and rows is not None and nulls == rows:
        return File(timeless=True)
    if first is None or last is None:
        return File()
    counted = None if nulls is None else _less(rows, nulls)
    return File(_instants(first, cadence)[0], _instants(last, cadence)[1], counted)


def _read(text: str, dtype: str) -> date | datetime:
    if dtype == "date":
        return date.fromisoformat(text[:10])
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=None if dtype == "timestamp_ntz" else time.tzinfo or UTC)


def _instants(value: date | datetime, cadence: Cadence) -> tuple[datetime, datetime]:
    """Give the first and the last instant that a value may stand for.

    A time without a zone is what local clocks show, as `cells.time_predicate` takes it: they show it
    twice when they are set back, and where they skip it the instants around the skip are given. A
    value beyond every cell becomes the first or the last instant.
    """
    if value.year < WHOLE_CELL.start.year:
        return WHOLE_CELL.start, WHOLE_CELL.start
    if value.year > _LAST_YEAR:
        return WHOLE_CELL.end, WHOLE_CELL.end
    if not isinstance(value, datetime):
        value = _midnight(value, cadence.tz)
    zone = value.tzinfo or zone_of(cadence.tz)
    shown = (value.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    first, last = sorted(max(at.replace(microsecond=0), WHOLE_CELL.start) for at in shown)
    return first, last


def _midnight(day: date, zone: str) -> datetime:
    """Give the instant at which a day begins; one that clocks skipped is the end of the day before."""
    ordinal = day.toordinal()
    begins = midnight(zone, ordinal)
    return instant_of(begins if local_day(zone, begins) == ordinal else begins - 1)


def _statistics(text: str | None) -> Mapping[str, Any]:
    try:
        statistics = json.loads(text) if text else {}
    except ValueError:
        return {}
    return statistics if isinstance(statistics, dict) else {}


def _deleted(action: Mapping[str, Any]) -> int:
    return int((action.get("deletionVector") or {}).get("cardinality") or 0)


def _less(rows: int | None, fewer: int | None) -> int | None:
    return None if rows is None else rows - (fewer or 0)
