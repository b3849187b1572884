"""Compute a model over a handful of rows, as the engine would: only the cells that it may read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from backfill_assets.intervals.interval import Interval
from backfill_assets.models.sql.query import SqlQuery, parameters_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source


def instant(text: str) -> datetime:
    """Read '2024-01-01' or '2024-01-01 12:30:00' as an instant of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def frame(spark: SparkSession, node: Model | Source, *rows: dict[str, Any]) -> DataFrame:
    """Make rows of a model or source from their text; a column left out is NULL."""
    names = [column.name for column in node.schema]
    texts = [[None if row.get(n) is None else str(row[n]) for n in names] for row in rows]
    made = spark.createDataFrame(texts, ", ".join(f"`{name}` string" for name in names))
    return made.select(*(F.col(c.name).cast(c.dtype).alias(c.name) for c in node.schema))


def computed(
    spark: SparkSession, model: Model, inputs: dict[str, DataFrame], start: str, end: str
) -> DataFrame:
    """Run a model's query for [start, end); its output has exactly the declared columns."""
    interval = Interval(instant(start), instant(end))
    if isinstance(model.logic, SqlQuery):
        views = {name: name.replace(".", "__") for name in inputs}
        for name, rows in inputs.items():
            rows.createOrReplaceTempView(views[name])
        span = (interval.start, interval.end)
        output = spark.sql(model.logic.bind(parameters_of(*span, *span), views))
    else:
        output = model.logic.load()(inputs, interval)
    declared = [(column.name, column.dtype) for column in model.schema]
    assert output.dtypes == declared
    return output


def records(rows: DataFrame, *columns: str) -> list[tuple[str | None, ...]]:
    """Give the rows as text, in order."""
    wanted = rows.select(*columns) if columns else rows
    return sorted(
        (tuple(None if value is None else str(value) for value in row) for row in wanted.collect()),
        key=str,
    )
