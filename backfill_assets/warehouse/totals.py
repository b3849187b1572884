"""Totals: what the columns of a table come to in some cells, in one pass over its rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from backfill_assets.models.column import quoted
from backfill_assets.warehouse.checksum import NO_SUM, exact_sum
from backfill_assets.warehouse.layers import rows_of
from backfill_assets.warehouse.session import batch_session
from backfill_assets.warehouse.spark_errors import explaining

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.tables import Table


@dataclass(frozen=True, slots=True)
class Totals:
    """What some columns of a table come to.

    Attributes:
        rows: how many rows there are.
        filled: in how many of them each column is not NULL.
        sums: the exact sum of each numeric column (doubles to nine places); None where one value
            has none, as not-a-numbers. Columns that are not numeric are left out.
    """

    rows: int
    filled: Mapping[str, int]
    sums: Mapping[str, Decimal | None]


def totals(
    spark: SparkSession,
    model: Model,
    table: Table,
    names: Sequence[str],
    cells: IntervalSet | None = None,
) -> Totals:
    """Count the values of some columns of a table, and sum them.

    Args:
        spark: a session.
        model: whose rows they are.
        table: what is read, layers included.
        names: of the columns; those that the table lacks are left out.
        cells: only these; None for every cell.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    with explaining(table.path):
        rows = rows_of(batch_session(spark), model, table, cells)
        there = [name for name in names if name in rows.columns]
        wanted = dict(_wanted(rows.schema, there))
        asked = [f"{sql} AS `{number}`" for number, sql in enumerate(wanted.values())]
        (found,) = rows.selectExpr(*asked).collect()
    answers = dict(zip(wanted, found, strict=True))
    return Totals(
        rows=answers["rows"],
        filled={name: answers[f"filled.{name}"] for name in there},
        sums={name: _sum(answers[f"sum.{name}"]) for name in there if f"sum.{name}" in answers},
    )


def _wanted(schema: StructType, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name each aggregate with its SQL."""
    yield "rows", "count(1)"
    for name in names:
        dtype = schema[name].dataType
        yield f"filled.{name}", f"count({quoted(name)})"
        if isinstance(dtype, T.NumericType):
            yield f"sum.{name}", exact_sum(quoted(name), dtype.simpleString())


def _sum(text: str) -> Decimal | None:
    return None if text == NO_SUM else Decimal(text)
