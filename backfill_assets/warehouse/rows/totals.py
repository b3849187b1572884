"""Totals: the sums and counts of a table's columns in some cells, in one pass over its rows.

Some million rows of plain types are read from their files in a second; all others are read by Spark,
with the same results.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, quoted
from backfill_assets.models.number import added
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.files.rows_in_files import condition_on_cells, rows_in_files
from backfill_assets.warehouse.rows.checksum import NO_SUM, exact_sum, sum_of_doubles
from backfill_assets.warehouse.spark.session import batch_session
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError, explaining_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table

_MOST_ROWS = 5_000_000
"""A double is summed exactly in about a microsecond; Spark has more than one core for more of them."""
_WIDEST = 30
"""Digits of a decimal, so that the sum of so many rows has its 38 digits."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums and counts of some columns of a table.

    Attributes:
        rows: how many rows there are.
        filled: in how many of them each column is not NULL.
        sums: the exact sum of each numeric column (doubles to nine places); None where one value
            has none, such as NaN. Columns that are not numeric are left out.
    """

    rows: int
    filled: Mapping[str, int]
    sums: Mapping[str, Decimal | None]


def totals(
    spark: Callable[[], SparkSession],
    model: Model,
    table: Table,
    names: Sequence[str],
    cells: IntervalSet | None = None,
) -> Totals:
    """Count the values of some columns of a table, and sum them.

    Args:
        spark: gives a session where the files alone can't answer.
        model: whose rows they are.
        table: what is read, layers included.
        names: of the columns.
        cells: only these; None for every cell.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    try:
        return totals_in_files(model, table, names, cells)
    except NeedsSparkError:
        return totals_by_spark(spark(), model, table, names, cells)


def totals_in_files(
    model: Model, table: Table, names: Sequence[str], cells: IntervalSet | None
) -> Totals:
    """Count and sum without Spark.

    Raises:
        NeedsSparkError: there are too many rows, or values that only Spark sums.
        CorruptTableError: a table's log is damaged.
    """
    if cells is None:
        raise NeedsSparkError(table.path, "all of its cells are to be read")
    rows, filled = 0, dict.fromkeys(names, 0)
    sums: dict[str, list[Decimal | None]] = defaultdict(list)
    types: dict[str, pa.DataType] = {}
    for read in rows_in_files(model, table, cells, names, _MOST_ROWS):
        rows += read.num_rows
        for name in read.column_names:
            column = read.column(name)
            if types.setdefault(name, column.type) != column.type:
                raise NeedsSparkError(table.path, f"column '{name}' has two types")
            filled[name] += len(column) - column.null_count
            if _is_numeric(table, column.type):
                sums[name].append(_sum_of(column))
    if lacking := [name for name in names if name not in types]:
        raise NeedsSparkError(table.path, f"no row has the column '{lacking[0]}'")
    return Totals(rows, filled, {name: added(parts) for name, parts in sums.items()})


def sums_by_cell(
    spark: Callable[[], SparkSession], model: Model, table: Table, name: str, cells: IntervalSet
) -> dict[Interval, Decimal | None]:
    """Sum a column in each of some cells; None where one value has no sum, such as NaN.

    Args:
        spark: gives a session where the files alone can't answer.
        model: whose rows they are.
        table: what is read; it has the column.
        name: of the column, which is numeric.
        cells: whole cells.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    each_cell = {cell: IntervalSet.of([cell]) for cell in model.cadence.cells(cells)}
    try:
        return _sums_in_files(model, table, name, cells, each_cell)
    except NeedsSparkError:
        return {
            cell: totals_by_spark(spark(), model, table, [name], own).sums[name]
            for cell, own in each_cell.items()
        }


def _sums_in_files(
    model: Model,
    table: Table,
    name: str,
    cells: IntervalSet,
    each_cell: Mapping[Interval, IntervalSet],
) -> dict[Interval, Decimal | None]:
    sums: dict[Interval, list[Decimal | None]] = {cell: [] for cell in each_cell}
    for read in rows_in_files(model, table, cells, [name, CELL_COLUMN], _MOST_ROWS):
        if not _is_numeric(table, read.schema.field(name).type):
            raise NeedsSparkError(table.path, f"column '{name}' is not numeric")
        for cell, own in each_cell.items():
            own_rows = read.filter(condition_on_cells(model, own))
            sums[cell].append(_sum_of(own_rows.column(name)))
    return {cell: added(parts) for cell, parts in sums.items()}


def _is_numeric(table: Table, dtype: pa.DataType) -> bool:
    """Whether a column has a sum.

    Raises:
        NeedsSparkError: only Spark sums its type exactly.
    """
    import pyarrow as pa  # noqa: PLC0415 - only readers of rows need it

    types = pa.types
    if types.is_floating(dtype) and not types.is_float64(dtype):
        raise NeedsSparkError(table.path, f"{dtype} is summed by it alone")
    if types.is_decimal(dtype) and dtype.precision > _WIDEST:
        raise NeedsSparkError(table.path, f"a sum of {dtype} may have too many digits")
    return types.is_integer(dtype) or types.is_decimal(dtype) or types.is_float64(dtype)


def _sum_of(column: pa.ChunkedArray) -> Decimal | None:
    import pyarrow as pa  # noqa: PLC0415 - only readers of rows need it
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_float64(column.type):
        counted = column.drop_null().value_counts()
        values, times = (counted.field(name).to_pylist() for name in ("values", "counts"))
        return sum_of_doubles(zip(values, times, strict=True))
    scale = column.type.scale if pa.types.is_decimal(column.type) else 0
    exact = pc.cast(column, pa.decimal128(38, scale))
    options = pc.ScalarAggregateOptions(min_count=0)
    return pc.call_function("sum", [exact], options).as_py()


def totals_by_spark(
    spark: SparkSession,
    model: Model,
    table: Table,
    names: Sequence[str],
    cells: IntervalSet | None,
) -> Totals:
    """Count and sum in one query; columns that neither the table nor the model has are left out.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    with explaining_errors(table.path):
        rows = rows_of(batch_session(spark), model, table, cells)
        columns = [name for name in names if name in rows.columns]
        expressions = dict(_wanted(rows.schema, columns))
        selection = [f"{sql} AS `{number}`" for number, sql in enumerate(expressions.values())]
        (row,) = rows.selectExpr(*selection).collect()
    answers = dict(zip(expressions, row, strict=True))
    return Totals(
        rows=answers["rows"],
        filled={name: answers[f"filled.{name}"] for name in columns},
        sums={name: _read(answers[f"sum.{name}"]) for name in columns if f"sum.{name}" in answers},
    )


def _wanted(schema: StructType, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name each aggregate with its SQL."""
    from pyspark.sql import types as T  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    yield "rows", "count(1)"
    for name in names:
        dtype = schema[name].dataType
        yield f"filled.{name}", f"count({quoted(name)})"
        if isinstance(dtype, T.NumericType):
            yield f"sum.{name}", exact_sum(quoted(name), dtype.simpleString())


def _read(text: str) -> Decimal | None:
    return None if text == NO_SUM else Decimal(text)
