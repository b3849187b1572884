"""Read models at their pins: as their readers, their audits and their consumers do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, quoted
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.rows.json_rows import as_json
from backfill_assets.warehouse.spark.session import batch_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.models.sql.query import SqlQuery
    from backfill_assets.warehouse.files.tables import Table


def read_pinned(spark: SparkSession, model: Model, table: Table) -> DataFrame:
    """Read a model at its pins, layers included, `_cell` left out.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    return rows_of(spark, model, table).drop(CELL_COLUMN)


def published_rows(
    spark: SparkSession, model: Model, cells: Iterable[Interval], table: Table
) -> DataFrame:
    """Read the rows of some cells with `_cell`, as an audit wants them."""
    return rows_of(spark, model, table, IntervalSet.of(cells))


@dataclass(frozen=True, slots=True)
class WrongRows:
    """What a check has found: how many rows, and one of them as JSON with masked values; empty where there is none."""

    count: int
    first: str


def wrong_rows(
    spark: SparkSession, query: SqlQuery, tables: Mapping[str, tuple[Model, Table]]
) -> WrongRows:
    """Count the rows that a query gives.

    Args:
        spark: the run's.
        query: without parameters, over models by their names.
        tables: each of these models, and where and at which pins it is read.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    session = batch_session(spark)
    views = {name: f"_check__{name.replace('.', '__')}" for name in tables}
    for name, (model, table) in tables.items():
        read_pinned(session, model, table).createOrReplaceTempView(views[name])
    rows = session.sql(query.bind({}, views))
    count = rows.count()
    shown = frozenset[str]().union(*(model.shown for model, _ in tables.values()))
    hidden = frozenset[str]().union(*(model.hidden for model, _ in tables.values()))
    first = as_json(rows, 1, shown - hidden) if count else ()
    return WrongRows(count, first[0] if first else "")


def rows_read(
    spark: SparkSession, model: Model, table: Table, columns: Iterable[str], cells: IntervalSet
) -> pa.Table:
    """Read columns of some cells of a model into memory, as a consumer reads them.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    rows = rows_of(batch_session(spark), model, table, cells)
    return rows.select(*map(quoted, columns)).toArrow()
