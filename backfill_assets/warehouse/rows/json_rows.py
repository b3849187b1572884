"""Write a few rows as JSON, for messages and evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.model import CELL_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_json(rows: DataFrame, limit: int) -> tuple[str, ...]:
    """Give some rows as JSON objects, `_cell` left out."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    plain = rows.drop(CELL_COLUMN)
    text = plain.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
    return tuple(row["row"] for row in text.limit(limit).collect())
