"""Find what fails an audit that is a query of its own: entities that lack, rows that a query names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import quoted
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.warehouse.files.cells import cell_number, cell_text, number_expression
from backfill_assets.warehouse.files.layers import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from backfill_assets.models.audit import Complete, SqlAudit
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.rows.profile import Subject


def lacking_entities(rows: DataFrame, audit: Complete, subject: Subject) -> DataFrame:
    """Give each expected entity that a cell of the batch has no row of, with the cell's number as `cell`."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    cadence = subject.model.cadence
    numbers = [(cell_number(cadence, cell),) for cell in subject.cells]
    cells = rows.sparkSession.createDataFrame(numbers, "cell BIGINT")
    number = F.expr(number_expression(cadence)).cast("bigint").alias("cell")
    present = rows.select(number, *map(quoted, audit.columns)).distinct()
    expected = cells.crossJoin(F.broadcast(_entities(rows, audit, subject)))
    return expected.join(present, ["cell", *audit.columns], "left_anti")


def _entities(rows: DataFrame, audit: Complete, subject: Subject) -> DataFrame:
    """Give the entities that are declared, or were seen in the last published cells."""
    if audit.entities:
        values = ", ".join(f"({', '.join(entity)})" for entity in audit.entities)
        names = ", ".join(map(quoted, audit.columns))
        declared = rows.sparkSession.sql(f"SELECT * FROM VALUES {values} AS declared({names})")  # noqa: S608 - literals
        types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
        return declared.selectExpr(
            *(f"CAST({quoted(name)} AS {types[name]}) AS {quoted(name)}" for name in audit.columns)
        )
    columns = [quoted(name) for name in audit.columns]
    cadence = subject.model.cadence
    if subject.published is None or cadence.unit is Unit.WHOLE:
        return rows.select(*columns).where("FALSE")
    first = min(cell.start for cell in subject.cells)
    before = IntervalSet.of([Interval(cadence.shift(first, -audit.seen), first)])
    seen = rows_of(rows.sparkSession, subject.model, subject.published, before)
    return seen.select(*columns).dropna().distinct()


def failing_by_query(
    rows: DataFrame, audit: SqlAudit, model: Model, cells: Sequence[Interval]
) -> DataFrame:
    """Give the rows that an author's query finds; those without a cell count for the batch's first."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    found = rows.sparkSession.sql(audit.sql, rows=rows)
    if CELL_COLUMN in found.columns:
        return found
    first = cell_text(model.cadence, min(cells))
    kind = dict(rows.dtypes)[CELL_COLUMN]
    return found.withColumn(CELL_COLUMN, F.lit(first).cast(kind))
