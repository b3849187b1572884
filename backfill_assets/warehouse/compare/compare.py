"""Compare two tables of one model: which keys were added or removed, and which values differ."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import RequestError, one_line
from backfill_assets.models.codec import ADDED_LATER
from backfill_assets.models.column import CELL_COLUMN, MASKED
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.warehouse.compare.comparison_sql import (
    COUNTS,
    NOT_CHOSEN,
    Compared,
    Question,
    Sides,
    differences_sql,
    grouped_sql,
    pairs_sql,
    sides_of,
)
from backfill_assets.warehouse.files.cells import cell_of_text
from backfill_assets.warehouse.rows.checksum import NO_SUM
from backfill_assets.warehouse.spark.session import batch_session
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Row, SparkSession
    from pyspark.sql.types import DataType

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two tables of a model.

    Attributes:
        by: the columns that it is grouped by.
        groups: one line per group, in their order.
        added: columns that only the new table has.
        removed: columns that only the old one has.
        sql: the query that gave it; empty of one that is kept, since tables may be moved with their state.
        model: of one that is kept, which model was compared; empty where some rows or differences were left out.
        retyped: columns of another type, with the old type and the new one.
    """

    by: tuple[str, ...]
    groups: tuple[Group, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    sql: str
    model: str = field(default="", metadata=ADDED_LATER)
    retyped: tuple[tuple[str, str, str], ...] = field(default=(), metadata=ADDED_LATER)

    def to_keep(self, model: Model, question: Question) -> Comparison:
        """Give what is kept of it, the answer to a question."""
        return replace(self, sql="", model=model.name if question.is_whole else "")

    def cells(self, model: Model) -> dict[Interval, Group]:
        """Give the groups of a comparison `BY_CELL` by their cell."""
        return {cell_of_text(model.cadence, str(group.by[0])): group for group in self.groups}


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that differs.

    Attributes:
        cell: start of its cell, as text.
        key: of the row.
        change: ``added``, ``removed`` or ``changed``.
        old: the old values: of the columns that differ, or of all when the row was removed.
        new: the new ones: of the columns that differ, or of all when the row was added.
    """

    cell: str
    key: Mapping[str, Any]
    change: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]

    def masked(self, model: Model) -> Difference:
        """Give it without the values of columns that a model hides, or does not declare; a NULL stays."""
        shown = {column.name for column in model.schema} - model.hidden

        def masked(values: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: value if name in shown or value is None else MASKED
                for name, value in values.items()
            }

        return replace(self, key=masked(self.key), old=masked(self.old), new=masked(self.new))

    def as_declared(self, model: Model) -> Difference:
        """Give it with its columns in the order of a model, which what is kept has lost; others come last."""
        at = {column.name: place for place, column in enumerate(model.schema)}

        def ordered(values: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: values[name]
                for name in sorted(values, key=lambda name: at.get(name, len(at)))
            }

        return replace(self, key=ordered(self.key), old=ordered(self.old), new=ordered(self.new))


@dataclass(frozen=True, slots=True)
class OutsideRows:
    """The differences in rows that a condition does not select.

    Attributes:
        differing: how many rows were added, removed or changed.
        sample: a few of them.
    """

    differing: int
    sample: tuple[Difference, ...]


def compare(spark: SparkSession, compared: Compared, question: Question) -> Comparison:
    """Compare two tables of a model key by key, in one query.

    Args:
        spark: a session.
        compared: the two tables.
        question: how it is grouped and to what it is restricted.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    sides = sides_of(compared, question.cells)
    sql = grouped_sql(sides, question)
    rows = _answers(spark, sql, compared, question)
    groups = tuple(_group(row, sides, question) for row in rows)
    return Comparison(question.by, groups, sides.added, sides.removed, sql, retyped=sides.retyped)


def differences(
    spark: SparkSession, compared: Compared, question: Question, limit: int = 10, most: str = ""
) -> tuple[Difference, ...]:
    """Show a few rows that differ, by cell and key, or those in which a number changes most.

    Args:
        spark: a session.
        compared: the two tables.
        question: to what the comparison is restricted.
        limit: how many at most.
        most: a numeric column: the rows in which it changes most come first; its old or new value
            counts as 0 where there is none.
    """
    sides = sides_of(compared, question.cells)
    sql = differences_sql(pairs_sql(sides, question), sides, limit, most)
    return _shown(spark, sql, compared, question, sides)


def rows_outside(
    spark: SparkSession, compared: Compared, where: str, cells: IntervalSet | None = None
) -> OutsideRows:
    """Find the differences in rows that a condition does not select.

    A row of both tables is selected by its old values: a selected row may change in any way, one
    that is not selected must stay as it is.

    Args:
        spark: a session.
        compared: the two tables.
        where: the condition, as Spark SQL over the model's columns.
        cells: only these; None for every cell.
    """
    sides, outside = sides_of(compared, cells), Question(by=(), cells=cells, where=where)
    pairs = pairs_sql(sides, outside, NOT_CHOSEN)
    counted = (
        f"{pairs}\nSELECT count_if(NOT `_in old` OR NOT `_in new` OR size(`_columns changed`) > 0) "
        "AS `differing` FROM compared"
    )
    (row,) = _answers(spark, counted, compared, outside)
    if not row["differing"]:
        return OutsideRows(0, ())
    sample = _shown(spark, differences_sql(pairs, sides, _SAMPLE), compared, outside, sides)
    return OutsideRows(row["differing"], sample)


_SAMPLE = 10


def _group(row: Row, sides: Sides, question: Question) -> Group:
    values = row.asDict()
    names = dict.fromkeys((*sides.new_types, *sides.old_types))
    columns = {
        name: Measure(
            changed=values.get(f"{name}: changed", 0),
            old_filled=values.get(f"{name}: old filled", 0),
            new_filled=values.get(f"{name}: new filled", 0),
            old_sum=_decimal(values.get(f"{name}: old sum")),
            new_sum=_decimal(values.get(f"{name}: new sum")),
            old_distinct=values.get(f"{name}: old distinct"),
            new_distinct=values.get(f"{name}: new distinct"),
            old_percentiles=_percentiles(values.get(f"{name}: old percentiles")),
            new_percentiles=_percentiles(values.get(f"{name}: new percentiles")),
        )
        for name in names
        if name not in sides.model.key
    }
    counts = {name: int(values[name]) for name in COUNTS}
    return Group(by=tuple(values[name] for name in question.by), **counts, columns=columns)


def _percentiles(values: list[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)


def _decimal(text: str | None) -> Decimal | None:
    return None if text in (None, NO_SUM) else Decimal(text)


def _answers(spark: SparkSession, sql: str, compared: Compared, question: Question) -> list[Row]:
    """Run a comparison.

    Raises:
        RequestError: Spark can't compute an expression of its groups, or of its tolerances'.
    """
    # A tenth of a second that light commands must not pay. The error of several stages at once stays py4j's.
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        with explaining_errors(compared.new.path):
            return batch_session(spark).sql(sql).collect()
    except (PySparkException, Py4JJavaError) as error:
        if not question.has_expressions:
            raise
        raise RequestError(
            found=f"Spark can't compute an expression that groups rows of {compared.model.name}: {one_line(error)}",
            do="give another expression, or a column, to --by and --tolerance",
        ) from error


def _shown(
    spark: SparkSession, sql: str, compared: Compared, question: Question, sides: Sides
) -> tuple[Difference, ...]:
    rows = _answers(spark, sql, compared, question)
    return tuple(_difference(row, sides).masked(compared.model) for row in rows)


def _difference(row: Row, sides: Sides) -> Difference:
    old, new = _values(row["old"], sides.old_types), _values(row["new"], sides.new_types)
    change = "changed"
    if not row["_in old"]:
        change, old = "added", {}
    elif not row["_in new"]:
        change, new = "removed", {}
    else:
        old, new = ({name: side[name] for name in row["_columns changed"]} for side in (old, new))
    key = _values(row["key"], {**sides.old_types, **sides.new_types})
    return Difference(row[CELL_COLUMN], key, change, old, new)


def _values(text: str, types: Mapping[str, DataType]) -> dict[str, Any]:
    """Read the columns of a row from JSON; decimals with all their digits."""
    from pyspark.sql import types as T  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    exact = json.loads(text, parse_float=shown_decimal)
    return {
        name: exact[name] if isinstance(types.get(name), T.DecimalType) else value
        for name, value in json.loads(text).items()
    }


def shown_decimal(text: str) -> float | Decimal:
    """Read a decimal that a row shows: as a float, unless that has other digits."""
    number, exact = float(text), Decimal(text)
    return number if Decimal(repr(number)) == exact else exact
