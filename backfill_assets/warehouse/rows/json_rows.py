"""Write a few rows as JSON, for messages and evidence."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from backfill_assets.models.column import CELL_COLUMN, MASKED, quoted, sql_literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark.sql import DataFrame


def as_json(rows: DataFrame, limit: int, shown: Collection[str]) -> tuple[str, ...]:
    """Give the first rows by their text as JSON objects, `_cell` left out: of the same rows always the same ones.

    Args:
        rows: any.
        limit: how many at most.
        shown: the columns whose values are written; all others are masked, and tell only whether they are NULL.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    named = rows.toDF(*_told_apart(rows.columns))
    plain = named.selectExpr(
        *masked_columns((name for name in named.columns if name != CELL_COLUMN), shown)
    )
    text = plain.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
    return tuple(row["row"] for row in text.orderBy("row").limit(limit).collect())


def _told_apart(names: Iterable[str]) -> list[str]:
    """Number the columns that have another one's name: an author's query may give several of one name."""
    seen: Counter[str] = Counter()
    told: list[str] = []
    for name in names:
        seen[name.lower()] += 1
        again = seen[name.lower()]
        told.append(f"{name} ({again})" if again > 1 else name)
    return told


def masked_columns(names: Iterable[str], shown: Collection[str]) -> list[str]:
    """Write Spark SQL for columns of which only some show their values."""
    return [
        quoted(name) if name in shown else f"{_MASKED.format(quoted(name))} AS {quoted(name)}"
        for name in names
    ]


_MASKED = f"IF({{}} IS NULL, NULL, {sql_literal(MASKED)})"
