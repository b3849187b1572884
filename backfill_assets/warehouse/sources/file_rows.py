"""Find the cells of a source whose rows differ between two delta_versions, without Spark.

Files that both versions name hold the same rows in both, so only added and removed files are read. Per
cell the hashes of their rows are added up, those of removed rows with a minus: a sum that is not zero
means a change. These sums are compared with no other value and are never stored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import zone_of
from backfill_assets.warehouse.files.rows_in_files import is_by_date, places_of
from backfill_assets.warehouse.log.delta_log import actions_of
from backfill_assets.warehouse.log.places import file_system, lies_elsewhere
from backfill_assets.warehouse.sources.source_changes import is_cut
from backfill_assets.warehouse.sources.source_columns import changed_columns
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa

    from backfill_assets.models.source import Source
    from backfill_assets.warehouse.sources.source_columns import Columns

_NULL = 0x9E3779B97F4A7C15
_AT_ONCE = 500_000  # rows in memory
_KNOWN_FEATURES = {"appendOnly", "invariants", "timestampNtz", "checkConstraints"}


@dataclass(frozen=True, slots=True)
class CellDifference:
    """How the rows of a cell differ.

    Attributes:
        more: how many it holds more than before.
        columns: which columns changed, where all others together hold the same rows; None: unknown,
            or rows were added or removed.
    """

    more: int
    columns: frozenset[str] | None = None


def changed_rows(
    path: str, source: Source, since: int, until: int, cells: IntervalSet
) -> dict[Interval, CellDifference]:
    """Give the cells whose rows differ between two delta_versions.

    Args:
        path: of the table.
        source: whose declared columns are compared.
        since: a delta_version.
        until: a later one.
        cells: only these are looked at.

    Raises:
        NeedsSparkError: files are missing, or only Spark can read them exactly.
    """
    names = frozenset(column.name for column in source.schema)
    try:
        comparison = _Comparison(path, source, since, until, _schema(path, source, since, until))
        differing = {
            cell: sums.more
            for cell, sums in comparison.sums(cells, [names]).items()
            if sums.more or any(sums.totals)
        }
        alike = IntervalSet.of(cell for cell, more in differing.items() if not more)
        columns = changed_columns(source, alike, comparison.same) if alike else {}
    except (
        OSError,
        ValueError,
        KeyError,
        NotImplementedError,
        OverflowError,
    ) as error:  # pyarrow raises these
        raise NeedsSparkError(path, str(error)) from error
    return {cell: CellDifference(more, columns.get(cell)) for cell, more in differing.items()}


@dataclass
class _Sums:
    """How the rows of one cell differ, in number and in the hashes of each group of columns."""

    more: int
    totals: list[int]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares a table's rows at two delta_versions; the sums wrap at 64 bits."""

    path: str
    source: Source
    since: int
    until: int
    schema: pa.Schema

    def same(self, cells: IntervalSet, groups: Sequence[Columns]) -> dict[Interval, list[bool]]:
        """Decide, by cell, for each group of columns whether they together hold the same rows."""
        return {
            cell: [not total for total in sums.totals]
            for cell, sums in self.sums(cells, groups).items()
            if not sums.more
        }

    def sums(self, cells: IntervalSet, groups: Sequence[Columns]) -> dict[Interval, _Sums]:
        """Read the added and removed files, one after the other."""
        by_cell: dict[Interval, _Sums] = {}
        for way, action in self._files():
            for rows in self._read(action):
                for cell, count, totals in self._summed(rows, groups):
                    if cell in cells:
                        cell_sums = by_cell.setdefault(cell, _Sums(0, [0] * len(groups)))
                        cell_sums.more += way * count
                        both = zip(cell_sums.totals, totals, strict=True)
                        cell_sums.totals = [(now + way * more) % 2**64 for now, more in both]
        return by_cell

    def _files(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        ways: Counter[str] = Counter()
        entries: dict[str, Mapping[str, Any]] = {}
        for at in range(self.since + 1, self.until + 1):
            for action in actions_of(self.path, at):
                for what, way in (("add", 1), ("remove", -1)):
                    entry = action.get(what)
                    if entry is None or not entry.get("dataChange", True):
                        continue
                    if entry.get("deletionVector"):
                        raise NeedsSparkError(self.path, "a file has a deletion vector")
                    ways[entry["path"]] += way
                    entries[entry["path"]] = {**entries.get(entry["path"], {}), **entry}
        yield from ((way, entries[name]) for name, way in ways.items() if way)

    def _read(self, action: Mapping[str, Any]) -> Iterator[pa.Table]:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        store, folder = file_system(self.path)
        name = unquote(action["path"])
        if lies_elsewhere(name):
            raise NeedsSparkError(self.path, "a file lies elsewhere")
        partition = action.get("partitionValues") or {}
        with pq.ParquetFile(f"{folder}/{name}", filesystem=store) as file:
            names = {*file.schema_arrow.names}
            own_columns = [column for column in self.schema.names if column in names]
            for batch in file.iter_batches(_AT_ONCE, columns=own_columns):
                columns = [
                    _constant(partition[field.name], field.type, batch.num_rows)
                    if field.name in partition
                    else batch.column(field.name).cast(field.type)
                    if field.name in names
                    else pa.nulls(batch.num_rows, field.type)
                    for field in self.schema
                ]
                yield pa.table(columns, schema=self.schema)

    def _summed(
        self, rows: pa.Table, groups: Sequence[Columns]
    ) -> Iterator[tuple[Interval, int, list[int]]]:
        """Give each cell's number of rows, and the sums of their hashes."""
        import numpy as np  # noqa: PLC0415

        if not rows.num_rows:
            return
        hashes = _hashed(rows, groups)
        numbers, cells = self._numbered(rows)
        order = np.argsort(numbers, kind="stable")
        distinct, first = np.unique(numbers[order], return_index=True)
        totals = [np.add.reduceat(hashed[order], first) for hashed in hashes]
        counts = np.diff([*first, len(numbers)])
        for at, number in enumerate(distinct):
            if number >= 0:
                yield cells[int(number)], int(counts[at]), [int(total[at]) for total in totals]

    def _numbered(self, rows: pa.Table) -> tuple[np.ndarray[Any, Any], list[Interval]]:
        """Number the cell of each row; -1 for a row without an event time."""
        import numpy as np  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        if not is_cut(self.source):
            return np.zeros(rows.num_rows, dtype=np.int64), [WHOLE_CELL]
        times = rows.column(str(self.source.time_column))
        if len(times) == times.null_count:
            return np.full(len(times), -1), []
        edge = pc.call_function("min_max", [times]).as_py()
        if is_by_date(times.type, self.source.cadence):
            cells = self._cells(*(_midnight(edge[end], self.source) for end in ("min", "max")))
        else:
            cells = self._cells(*(edge[end].astimezone(UTC) for end in ("min", "max")))
        return places_of(times, cells, self.source.cadence), cells

    def _cells(self, first: datetime, last: datetime) -> list[Interval]:
        """Give every cell from one instant to another."""
        cadence = self.source.cadence
        first = first.replace(microsecond=0)
        span = Interval(cadence.floor(first), cadence.next(last.replace(microsecond=0)))
        if cadence.count(span) > _MOST_CELLS:
            raise NeedsSparkError(self.path, f"its rows lie in more than {_MOST_CELLS:,} cells")
        return [*cadence.cells(span)]


def _schema(path: str, source: Source, since: int, until: int) -> pa.Schema:
    """Give the declared columns that the table has; the earlier ones must have the same types."""
    import pyarrow as pa  # noqa: PLC0415 - only comparisons need it
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        old, table = (DeltaTable(path, version=at) for at in (since, until))
    except DeltaError as error:
        raise NeedsSparkError(path, str(error)) from error
    features = {*(table.protocol().reader_features or ())} - _KNOWN_FEATURES
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if features or mapped != "none":
        reason = f"it uses {', '.join(sorted(features)) or 'column mapping'}"
        raise NeedsSparkError(path, reason)
    before, after = (pa.schema(version.schema().to_arrow()) for version in (old, table))
    names = [
        column.name for column in source.schema if column.name in {*before.names, *after.names}
    ]
    for name in names:
        if name not in after.names:
            raise NeedsSparkError(path, f"column '{name}' is gone")
        if name in before.names and before.field(name).type != after.field(name).type:
            raise NeedsSparkError(path, f"column '{name}' has another type than before")
        if pa.types.is_nested(after.field(name).type):
            raise NeedsSparkError(path, f"column '{name}' is nested")
    return pa.schema([after.field(name) for name in names])


_MOST_CELLS = 200_000


def _midnight(day: date, source: Source) -> datetime:
    zone = zone_of(source.cadence.tz)
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _constant(text: str | None, dtype: pa.DataType, rows: int) -> pa.Array:
    """Read a partition's value, which the log has as text; an empty one is NULL."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(dtype):
        message = "it is partitioned by a timestamp"
        raise ValueError(message)
    value = pa.scalar(text or None, pa.string()).cast(dtype)
    return pa.repeat(value, rows)


def _hashed(rows: pa.Table, groups: Sequence[Columns]) -> list[np.ndarray[Any, Any]]:
    """Hash every row over each group of columns; a NULL differs from every value."""
    import numpy as np  # noqa: PLC0415

    columns = {
        name: _mixed(_column_hash(rows.column(name).combine_chunks()) ^ np.uint64(_salt(number)))
        for number, name in enumerate(rows.column_names, start=1)
        if any(name in group for group in groups)
    }
    hashes: list[np.ndarray[Any, Any]] = []
    for group in groups:
        total = np.zeros(rows.num_rows, dtype=np.uint64)
        for name in group & columns.keys():
            total += columns[name]
        hashes.append(_mixed(total))
    return hashes


def _salt(number: int) -> int:
    """Give a column's own number, so that values swapped between columns are seen."""
    return number * _NULL % 2**64


def _mixed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Hash numbers or objects to 64 bits."""
    import numpy as np  # noqa: PLC0415
    from pandas.util import hash_array  # noqa: PLC0415

    hashing: Any = hash_array  # a class in its stubs
    return np.asarray(hashing(values, categorize=False), dtype=np.uint64)


def _column_hash(values: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    lacks = values.is_null().to_numpy(zero_copy_only=False)
    dtype = values.type
    if pa.types.is_floating(dtype):
        plain = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        bits = np.where(np.isnan(plain), np.nan, plain).view(np.uint64)
    elif pa.types.is_integer(dtype) or pa.types.is_boolean(dtype):
        bits = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    elif pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        wide = pa.int32() if pa.types.is_date32(dtype) else pa.int64()
        days = values.cast(wide).cast(pa.int64()).fill_null(0)
        bits = days.to_numpy(zero_copy_only=False).view(np.uint64)
    else:
        text = values if pa.types.is_binary(dtype) else values.cast(pa.large_string())
        bits = _mixed(text.to_numpy(zero_copy_only=False))
    return np.where(lacks, np.uint64(_NULL), _mixed(bits))
