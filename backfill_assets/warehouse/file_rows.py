"""Which cells of a source hold other rows at one delta_version than at another, read without Spark.

Files that stand in both hold the same rows in both, so only those that came or went are read. Per cell
the hashes of their rows are added up, those of gone rows with a minus: what is not zero has changed.
These sums are compared with nothing else and are never stored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval import Interval, epoch_of
from backfill_assets.intervals.zones import zone_of
from backfill_assets.warehouse.delta_log import actions_of
from backfill_assets.warehouse.source_changes import is_cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import pyarrow as pa

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.source import Source

_NULL = 0x9E3779B97F4A7C15
_EPOCH = date(1970, 1, 1)
_KNOWN_FEATURES = {"appendOnly", "invariants", "timestampNtz", "checkConstraints"}


class NeedsSparkError(BackfillAssetsError):
    """The rows can't be read, or not be compared, without Spark."""

    def __init__(self, path: str, found: str) -> None:
        self.path = path
        super().__init__(f"the rows of the table at {path} can't be read without Spark: {found}")


def changed_rows(
    path: str, source: Source, since: int, until: int, cells: IntervalSet
) -> dict[Interval, int]:
    """Give the cells whose rows differ between two delta_versions, and how many more they hold.

    Args:
        path: of the table.
        source: whose declared columns are compared.
        since: a delta_version.
        until: a later one.
        cells: only these are looked at.

    Raises:
        NeedsSparkError: files are gone, or hold what only Spark reads as Delta means it.
    """
    try:
        return _Comparison(path, source, cells).run(since, until)
    except (
        OSError,
        ValueError,
        KeyError,
        NotImplementedError,
        OverflowError,
    ) as error:  # pyarrow's own are these
        raise NeedsSparkError(path, str(error)) from error


@dataclass
class _Comparison:
    """One comparison, while it lasts; the sums wrap at 64 bits."""

    path: str
    source: Source
    cells: IntervalSet
    rows: Counter[Interval] = field(default_factory=Counter["Interval"])
    sums: dict[Interval, int] = field(default_factory=dict["Interval", int])

    def run(self, since: int, until: int) -> dict[Interval, int]:
        """Read the files that came and went, one after the other."""
        schema = self._schema(until)
        for way, action in self._files(since, until):
            self._add(way, self._read(action, schema))
        differ = (one for one, total in self.sums.items() if total or self.rows[one])
        return {one: self.rows[one] for one in differ}

    def _files(self, since: int, until: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        ways: Counter[str] = Counter()
        known: dict[str, Mapping[str, Any]] = {}
        for at in range(since + 1, until + 1):
            for action in actions_of(self.path, at):
                for what, way in (("add", 1), ("remove", -1)):
                    one = action.get(what)
                    if one is None or not one.get("dataChange", True):
                        continue
                    if one.get("deletionVector"):
                        raise NeedsSparkError(self.path, "a file has a deletion vector")
                    ways[one["path"]] += way
                    known[one["path"]] = {**known.get(one["path"], {}), **one}
        yield from ((way, known[name]) for name, way in ways.items() if way)

    def _schema(self, until: int) -> pa.Schema:
        import pyarrow as pa  # noqa: PLC0415 - only who compares pays for it
        from deltalake import DeltaTable  # noqa: PLC0415

        table = DeltaTable(self.path, version=until)
        features = {*(table.protocol().reader_features or ())} - _KNOWN_FEATURES
        mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if features or mapped != "none":
            found = f"it uses {', '.join(sorted(features)) or 'column mapping'}"
            raise NeedsSparkError(self.path, found)
        there = pa.schema(table.schema().to_arrow())
        declared = [one.name for one in self.source.schema if one.name in there.names]
        for name in declared:
            if pa.types.is_nested(there.field(name).type):
                raise NeedsSparkError(self.path, f"column '{name}' is nested")
        return pa.schema([there.field(name) for name in declared])

    def _read(self, action: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.fs  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        folder, files = pa.fs.FileSystem.from_uri(self.path) if "://" in self.path else (None, "")
        name = unquote(action["path"])
        if "://" in name or name.startswith("/"):
            raise NeedsSparkError(self.path, "a file lies elsewhere")
        where = f"{files or self.path}/{name}" if folder is None else f"{files}/{name}"
        with pq.ParquetFile(where, filesystem=folder) as file:
            there = {*file.schema_arrow.names}
            found = file.read(columns=[one for one in schema.names if one in there])
        partition = action.get("partitionValues") or {}
        columns = [
            _constant(partition[one.name], one.type, found.num_rows)
            if one.name in partition
            else found.column(one.name).cast(one.type)
            if one.name in there
            else pa.nulls(found.num_rows, one.type)
            for one in schema
        ]
        return pa.table(columns, schema=schema)

    def _add(self, way: int, rows: pa.Table) -> None:
        import numpy as np  # noqa: PLC0415

        if not rows.num_rows:
            return
        hashes = _hashed(rows)
        numbers, known = self._numbered(rows)
        order = np.argsort(numbers, kind="stable")
        found, first = np.unique(numbers[order], return_index=True)
        totals = np.add.reduceat(hashes[order], first)
        counts = np.diff([*first, len(numbers)])
        for number, total, count in zip(found, totals, counts, strict=True):
            cell = known[int(number)] if number >= 0 else None
            if cell is None or cell not in self.cells:
                continue
            self.rows[cell] += way * int(count)
            self.sums[cell] = (self.sums.get(cell, 0) + way * int(total)) % 2**64

    def _numbered(self, rows: pa.Table) -> tuple[np.ndarray[Any, Any], list[Interval]]:
        """Number the cell of each row; -1 for a row without an event time."""
        import numpy as np  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        if not is_cut(self.source):
            return np.zeros(rows.num_rows, dtype=np.int64), [WHOLE_CELL]
        times = rows.column(str(self.source.time_column)).combine_chunks()
        lacks = times.is_null().to_numpy(zero_copy_only=False)
        if len(times) == times.null_count:
            return np.full(len(times), -1), []
        edge = pc.min_max(times).as_py()
        if pa.types.is_date(times.type) and not self.source.cadence.unit.is_subday:
            cells = self._cells(*(_midnight(edge[one], self.source) for one in ("min", "max")))
            zone = zone_of(self.source.cadence.tz)
            starts = [(one.start.astimezone(zone).date() - _EPOCH).days for one in cells]
            values = times.cast(pa.int32())
        elif pa.types.is_timestamp(times.type) and times.type.tz:
            cells = self._cells(*(edge[one].astimezone(UTC) for one in ("min", "max")))
            starts = [epoch_of(one.start) * 1_000_000 for one in cells]
            values = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        else:
            raise NeedsSparkError(self.path, f"its event time is a {times.type}")
        plain = values.fill_null(0).to_numpy(zero_copy_only=False)
        numbers = np.searchsorted(np.asarray(starts), plain, side="right") - 1
        return np.where(lacks, -1, numbers), cells

    def _cells(self, first: datetime, last: datetime) -> list[Interval]:
        """Give every cell from one instant to another."""
        cadence = self.source.cadence
        first = first.replace(microsecond=0)
        span = Interval(cadence.floor(first), cadence.next(last.replace(microsecond=0)))
        if cadence.count(span) > _MOST_CELLS:
            raise NeedsSparkError(self.path, f"its rows lie in more than {_MOST_CELLS:,} cells")
        return [*cadence.cells(span)]


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


def _hashed(rows: pa.Table) -> np.ndarray[Any, Any]:
    """Hash every row, NULLs told from values, over its columns in order."""
    import numpy as np  # noqa: PLC0415
    from pandas.util import hash_array  # noqa: PLC0415

    total = np.zeros(rows.num_rows, dtype=np.uint64)
    for number, name in enumerate(rows.column_names):
        column = _column_hash(rows.column(name).combine_chunks())
        salt = np.uint64((number + 1) * _NULL % 2**64)
        total += hash_array(column ^ salt)
    return hash_array(total)


def _column_hash(values: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    from pandas.util import hash_array  # noqa: PLC0415

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
        text = values if pa.types.is_binary(dtype) else values.cast(pa.string())
        coded = text.dictionary_encode()
        known = np.asarray([*map(repr, coded.dictionary.to_pylist()), ""], dtype=object)
        indices = coded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        bits = hash_array(known)[indices]
    return np.where(lacks, np.uint64(_NULL), hash_array(bits))
