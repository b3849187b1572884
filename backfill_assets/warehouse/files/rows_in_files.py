"""Rows read from the files of their tables without Spark, and the cells that they belong to."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.zones import zone_of
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.file_spans import entries_of
from backfill_assets.warehouse.files.layers import cells_by_table
from backfill_assets.warehouse.files.plain_tables import plain_table
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table

_EPOCH = date(1970, 1, 1)


def rows_in_files(
    model: Model, table: Table, cells: IntervalSet, names: Sequence[str], most: int
) -> Iterator[pa.Table]:
    """Read columns of the rows of some cells, one Arrow table per table that answers for some.

    Args:
        model: whose rows they are.
        table: what is read, layers included.
        cells: whose rows.
        names: of the columns; those that a table lacks are left out of its rows.
        most: how many rows at most, of all tables together.

    Raises:
        NeedsSparkError: there are more rows, or the files can't be read here.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - only readers of rows need it

    room = most
    for layer, inside in cells_by_table(table, cells):
        with _explaining(layer.path):
            log = DeltaTable(layer.path, version=layer.delta_version)
            dataset = _dataset(log, CELL_COLUMN, _days_of_cells(model.cadence, inside))
            chosen = condition_on_cells(model, inside)
            room -= dataset.count_rows(filter=chosen)
            if room < 0:
                raise NeedsSparkError(layer.path, f"there are more than {most:,} rows")
            columns = [name for name in names if name in dataset.schema.names]
            rows = dataset.to_table(columns=columns, filter=chosen)
        yield rows


def rows_of_source_in_files(
    table: Table, time: str, span: Interval, cadence: Cadence, names: Sequence[str], most: int
) -> Iterator[pa.Table]:
    """Read columns of a source's rows whose time lies in a span, a part of them at a time.

    Args:
        table: of the source.
        time: its time column.
        span: in whose zone a date lies, `cadence` says.
        cadence: of who asks.
        names: of the columns, which the table has.
        most: how many rows at most.

    Raises:
        NeedsSparkError: there are more rows, or the files can't be read here.
    """
    import pyarrow as pa  # noqa: PLC0415 - only readers of rows need it

    plain = plain_table(table.path, table.delta_version)
    if plain is None:
        raise NeedsSparkError(table.path, "its rows are not only what its files hold")
    with _explaining(table.path):
        dataset = _dataset(plain.log, time, _days(span, cadence))
        chosen = _condition_on_time(dataset.schema.field(time), span, cadence)
        room = most
        for batch in dataset.to_batches(columns=[*names], filter=chosen):
            room -= batch.num_rows
            if room < 0:
                raise NeedsSparkError(table.path, f"there are more than {most:,} rows")
            yield pa.Table.from_batches([batch])


def condition_on_cells(model: Model, cells: IntervalSet) -> pc.Expression:
    """Choose the rows of some cells by `_cell`, as `cells.cells_predicate` does."""
    import pyarrow.compute as pc  # noqa: PLC0415

    cadence, zone = model.cadence, zone_of(model.cadence.tz)

    def at(instant: datetime) -> pc.Expression:
        if cadence.unit.is_subday:
            return pc.scalar(instant.astimezone(UTC))
        return pc.scalar(instant.astimezone(zone).date())

    field = pc.field(CELL_COLUMN)
    if cadence.unit is Unit.WHOLE:
        return field == pc.scalar(date.fromisoformat(cell_text(cadence, WHOLE_CELL)))
    chosen = [(field >= at(span.start)) & (field < at(span.end)) for span in cells]
    condition = chosen[0]
    for other in chosen[1:]:
        condition |= other
    return condition


def places_of(
    times: pa.ChunkedArray, cells: Sequence[Interval], cadence: Cadence
) -> np.ndarray[Any, Any]:
    """Give for each time the place of the cell that it lies in; -1 for none, and for no time.

    Args:
        times: dates, or timestamps with a zone.
        cells: in order.
        cadence: of the cells; dates are local to its zone.

    Raises:
        ValueError: only Spark tells the cells of times of this type.
    """
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    by_date = is_by_date(times.type, cadence)
    plain = times.cast(pa.int32() if by_date else pa.timestamp("us", "UTC")).cast(pa.int64())
    if not cells:
        return np.full(len(times), -1)
    starts, ends = _edges(tuple(cells), cadence, by_date=by_date)
    values = plain.fill_null(0).to_numpy()
    places = np.searchsorted(starts, values, side="right") - 1
    lacks = times.is_null().to_numpy()
    return np.where(lacks | (places < 0) | (values >= ends[places]), -1, places)


@lru_cache(maxsize=16)  # rows are read in many parts
def _edges(
    cells: tuple[Interval, ...], cadence: Cadence, *, by_date: bool
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Give the starts and the ends of cells as Arrow counts them: in local days, or in microseconds."""
    import numpy as np  # noqa: PLC0415

    zone = zone_of(cadence.tz)

    def counted(instant: datetime) -> int:
        if by_date:
            return (instant.astimezone(zone).date() - _EPOCH).days
        return epoch_of(instant) * 1_000_000

    starts = [counted(cell.start) for cell in cells]
    return np.asarray(starts), np.asarray([counted(cell.end) for cell in cells])


def is_by_date(dtype: pa.DataType, cadence: Cadence) -> bool:
    """Whether times of a type are told apart by date; by instant otherwise.

    Raises:
        ValueError: neither is known of this type.
    """
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_date32(dtype) and not cadence.unit.is_subday:
        return True
    if pa.types.is_timestamp(dtype) and dtype.tz:
        return False
    message = f"its event time is a {dtype}"
    raise ValueError(message)


def _condition_on_time(field: pa.Field, span: Interval, cadence: Cadence) -> pc.Expression:
    import pyarrow.compute as pc  # noqa: PLC0415

    first, last = span.start.astimezone(UTC), span.end.astimezone(UTC)
    if is_by_date(field.type, cadence):
        first, last = _days(span, cadence)
    time = pc.field(field.name)
    return (time >= pc.scalar(first)) & (time < pc.scalar(last))


def _days(span: Interval, cadence: Cadence) -> tuple[date, date]:
    """Give the local dates of a span's start and end."""
    zone = zone_of(cadence.tz)
    return span.start.astimezone(zone).date(), span.end.astimezone(zone).date()


def _days_of_cells(cadence: Cadence, cells: IntervalSet) -> tuple[date, date] | None:
    span = cells.hull()
    return None if span is None or cadence.unit is Unit.WHOLE else _days(span, cadence)


def _dataset(log: DeltaTable, column: str, days: tuple[date, date] | None) -> ds.Dataset:
    """Open a table at a pin: all of its files, or at least those with rows between two days if the column is a date.

    Raises:
        ValueError: a condition on the column would leave out rows.
    """
    from deltalake.schema import PrimitiveType  # noqa: PLC0415
    from pyarrow.dataset import ParquetReadOptions  # noqa: PLC0415

    _require_bounds(log, column)
    dates = [field.name for field in log.schema().fields if field.type == PrimitiveType("date")]
    within = [(column, ">=", days[0]), (column, "<", days[1])] if days and column in dates else None
    options = ParquetReadOptions(coerce_int96_timestamp_unit="us")  # as Spark reads them
    return log.to_pyarrow_dataset(parquet_read_options=options, file_pruning_predicate=within)


def _require_bounds(log: DeltaTable, column: str) -> None:
    """Refuse a table whose log does not say, of each file, from where to where a column reaches.

    deltalake makes a bound of the NULL that it reads there, and Arrow then leaves out the rows of such a file.
    """
    if column in log.metadata().partition_columns:
        return
    low, high, nulls = f"min.{column}", f"max.{column}", f"null_count.{column}"
    for entry in entries_of(log, {"num_records", low, high, nulls}):
        only_nulls = nulls in entry and entry[nulls] == entry.get("num_records") is not None
        if not only_nulls and (entry.get(low) is None or entry.get(high) is None):
            message = f"its log does not say from where to where the column '{column}' reaches"
            raise ValueError(message)


@contextmanager
def _explaining(path: str) -> Iterator[None]:
    """Say that a table needs Spark where its files can't be read here."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - only readers of rows need it
    from pyarrow.lib import ArrowException  # noqa: PLC0415

    try:
        yield
    except (OSError, ValueError, KeyError, OverflowError, DeltaError, ArrowException) as error:
        raise NeedsSparkError(path, str(error)) from error
