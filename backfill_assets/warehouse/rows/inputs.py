"""Read a batch's inputs, at its pins and of exactly its cells, and run the model's query on them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import zone_of
from backfill_assets.models.column import quoted
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery, parameters_of
from backfill_assets.warehouse.files.cells import time_predicate
from backfill_assets.warehouse.files.file_spans import CellsRead
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.files.tables import (
    MissingTableError,
    Table,
    same_type,
    snapshot_df,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery
    from backfill_assets.models.source import Source


_ZONES = timedelta(days=2)
"""More than two zones' clocks ever differ."""

RowsFrom: TypeAlias = "Callable[[SparkSession, Model, Interval, Mapping[str, Input]], DataFrame]"
"""What gives a batch its rows: `compute`, but in an adoption or an empty backfill."""


class SchemaDriftError(BackfillAssetsError):
    """A source's table lacks a declared column, or holds it with another type."""

    def __init__(self, *, source: str, column: str, found: str, expected: str) -> None:
        self.source, self.column = source, column
        self.found, self.expected = found, expected
        super().__init__(
            f"source '{source}' has drifted: column '{column}' is {found}, expected {expected}; "
            "bring the table back to what is declared, or change the declaration and the models "
            "that read it"
        )


@dataclass(frozen=True, slots=True)
class Input:
    """One upstream of a batch.

    Attributes:
        declared: the upstream's own declaration.
        table: where it lies and the pins, layers included.
        cells: which of its cells the batch reads.
    """

    declared: Model | Source
    table: Table
    cells: IntervalSet

    @property
    def name(self) -> str:
        """The name by which the model's query reads it."""
        return self.declared.name


def read_cells(spark: SparkSession, upstream: Input) -> DataFrame:
    """Read an upstream's declared columns, of exactly the cells that the batch reads.

    Raises:
        MissingTableError: a source has no table.
        SchemaDriftError: a source's table differs from its declaration.
    """
    rows, time = _declared_rows(spark, upstream, upstream.cells), upstream.declared.time_column
    if isinstance(upstream.declared, Model) or time is None:
        return rows
    dtype = rows.schema[time].dataType.simpleString()
    return rows.where(time_predicate(time, dtype, upstream.declared.cadence, upstream.cells))


def read_around(spark: SparkSession, upstream: Input, span: Interval | None) -> DataFrame:
    """Read an upstream's declared columns at the pin: at least the rows whose time lies in a span, in any zone.

    Args:
        spark: a session.
        upstream: what is read.
        span: None for every row.
    """
    if upstream.declared.time_column is None or span is None:
        return read_whole(spark, upstream)
    return _declared_rows(spark, upstream, cells_around(upstream.declared.cadence, span))


def cells_around(cadence: Cadence, span: Interval) -> IntervalSet:
    """Give the cells of an upstream in which rows may lie whose time is in a span, in any zone."""
    return IntervalSet.of([Interval(cadence.floor(span.start - _ZONES), span.end + _ZONES)])


def read_whole(spark: SparkSession, upstream: Input) -> DataFrame:
    """Read an upstream's declared columns in every cell, at the pin."""
    return _declared_rows(spark, upstream, None)


def compute(
    session: SparkSession, model: Model, interval: Interval, inputs: Mapping[str, Input]
) -> DataFrame:
    """Build the result of a model's query over its inputs for one interval, without executing it.

    Args:
        session: the batch's own, since its views are named after the upstreams.
        model: whose query runs.
        interval: from the first to the last of the batch's cells.
        inputs: by upstream name.
    """
    frames = {name: read_cells(session, upstream) for name, upstream in inputs.items()}
    if not isinstance(model.logic, SqlQuery):
        return loaded(model.logic)(frames, interval)
    # A name that no author gives a CTE, which would hide the view.
    views = {name: f"_upstream__{name.replace('.', '__')}" for name in frames}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(views[name])
    zone = zone_of(model.cadence.tz)
    parameters = parameters_of(
        interval.start,
        interval.end,
        interval.start.astimezone(zone),
        interval.end.astimezone(zone),
    )
    return session.sql(model.logic.bind(parameters, views))


def loaded(query: ModuleQuery | FunctionQuery) -> Callable[..., DataFrame]:
    """Load a function; Spark's workers, which lack its modules, receive their functions by value."""
    from pyspark.cloudpickle import register_pickle_by_value  # noqa: PLC0415 - planning has no Spark

    register_pickle_by_value(sys.modules[query.private_package()])
    return query.load()


def no_rows(
    session: SparkSession,
    model: Model,
    interval: Interval,  # noqa: ARG001 - the signature of `RowsFrom`
    inputs: Mapping[str, Input],  # noqa: ARG001
) -> DataFrame:
    """Give an empty frame with the declared columns, for cells that are recorded as empty."""
    columns = ", ".join(f"{quoted(column.name)} {column.dtype}" for column in model.schema)
    return session.createDataFrame([], columns)


def _declared_rows(spark: SparkSession, upstream: Input, cells: IntervalSet | None) -> DataFrame:
    """Read an upstream's declared columns: of these cells (of a source, of at least these), or of all."""
    declared, table = upstream.declared, upstream.table
    if isinstance(declared, Model):
        rows = rows_of(spark, declared, table, cells)
    else:
        rows = _source_rows(spark, declared, table, cells)
    return rows.select(*(quoted(column.name) for column in declared.schema))


def _source_rows(
    spark: SparkSession, source: Source, table: Table, cells: IntervalSet | None
) -> DataFrame:
    if not table.exists:
        raise MissingTableError(name=source.name, path=table.path)
    time, read = source.time_column, None
    if time is not None and cells is not None:
        read = CellsRead(time, source.cadence, cells)
    rows = snapshot_df(spark, table.path, table.delta_version, read)
    types = {field.name: type_of(field.dataType) for field in rows.schema.fields}
    for column in source.schema:
        dtype = types.get(column.name)
        if dtype is None or not same_type(dtype, column.dtype):
            raise SchemaDriftError(
                source=source.name,
                column=column.name,
                found=dtype or f"missing (there are {', '.join(types)})",
                expected=column.dtype,
            )
    return rows
