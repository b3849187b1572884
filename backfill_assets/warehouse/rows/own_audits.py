"""Find what fails an audit that is a query of its own: entities that lack, rows that a query names."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import PythonAudit
from backfill_assets.models.column import CELL_COLUMN, quoted
from backfill_assets.warehouse.files.cells import (
    cell_number,
    cell_text,
    cells_predicate,
    number_expression,
)
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.rows.inputs import loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from backfill_assets.models.audit import Complete, SqlAudit
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.rows.profile import Subject


NUMBER = "_cell number"
"""The column of a cell's number beside the author's own columns; it has no name that one of them could have."""
_EARLIER = "_cell before"


def lacking_entities(rows: DataFrame, audit: Complete, subject: Subject) -> DataFrame:
    """Give each expected entity that a cell of the batch has no row of, with the cell's number as `NUMBER`."""
    present = _present(rows, audit, subject)
    expected = (
        _declared(rows, audit, subject) if audit.entities else _seen(present, rows, audit, subject)
    )
    return expected.join(present, [NUMBER, *audit.columns], "left_anti")


def _present(rows: DataFrame, audit: Complete, subject: Subject) -> DataFrame:
    """Give the entities that each cell has rows of."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    number = F.expr(number_expression(subject.model.cadence)).cast("bigint").alias(NUMBER)
    return rows.select(number, *map(quoted, audit.columns)).distinct()


def _declared(rows: DataFrame, audit: Complete, subject: Subject) -> DataFrame:
    """Give every declared entity for every cell of the batch."""
    values = ", ".join(f"({', '.join(entity)})" for entity in audit.entities)
    names = ", ".join(map(quoted, audit.columns))
    listed = rows.sparkSession.sql(f"SELECT * FROM VALUES {values} AS declared({names})")  # noqa: S608 - literals
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    typed = listed.selectExpr(
        *(f"CAST({quoted(name)} AS {types[name]}) AS {quoted(name)}" for name in audit.columns)
    )
    numbers = [(cell_number(subject.model.cadence, cell),) for cell in subject.cells]
    return rows.sparkSession.createDataFrame(numbers, f"{quoted(NUMBER)} BIGINT").crossJoin(typed)


def _seen(present: DataFrame, rows: DataFrame, audit: Complete, subject: Subject) -> DataFrame:
    """Give for every cell of the batch the entities of the cells before it, published or of the batch."""
    cadence, spark = subject.model.cadence, rows.sparkSession
    pairs: list[tuple[int, int]] = []
    if cadence.unit is not Unit.WHOLE:
        for cell in subject.cells:
            before = Interval(cadence.shift(cell.start, -audit.seen), cell.start)
            number = cell_number(cadence, cell)
            pairs += [(number, cell_number(cadence, earlier)) for earlier in cadence.cells(before)]
    entities = present
    if subject.published is not None and pairs:
        first = min(cell.start for cell in subject.cells)
        last = max(cell.end for cell in subject.cells)
        reach = IntervalSet.of([Interval(cadence.shift(first, -audit.seen), last)])
        others = reach - IntervalSet.of(subject.cells)
        published = rows_of(spark, subject.model, subject.published, others)
        entities = present.unionByName(_present(published, audit, subject))
    earlier = entities.withColumnRenamed(NUMBER, _EARLIER).dropna()
    frame = spark.createDataFrame(pairs, f"{quoted(NUMBER)} BIGINT, {quoted(_EARLIER)} BIGINT")
    return frame.join(earlier, _EARLIER).drop(_EARLIER).distinct()


def failing_by_query(
    rows: DataFrame, audit: SqlAudit | PythonAudit, model: Model, cells: Sequence[Interval]
) -> DataFrame:
    """Give the rows that an author's query or function finds; those of no cell of the batch count for its first."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    failures = _by_function(rows, audit) if isinstance(audit, PythonAudit) else _by_sql(rows, audit)
    first = F.lit(cell_text(model.cadence, min(cells))).cast(dict(rows.dtypes)[CELL_COLUMN])
    if CELL_COLUMN not in failures.columns:
        return failures.withColumn(CELL_COLUMN, first)
    own = F.expr(cells_predicate(model.cadence, cells))
    return failures.withColumn(CELL_COLUMN, F.when(own, F.col(CELL_COLUMN)).otherwise(first))


def _by_sql(rows: DataFrame, audit: SqlAudit) -> DataFrame:
    # Other braces of the author's are not places to fill.
    escaped = audit.sql.replace("{", "{{").replace("}", "}}").replace("{{rows}}", "{rows}")
    return rows.sparkSession.sql(escaped, rows=rows)


def _by_function(rows: DataFrame, audit: PythonAudit) -> DataFrame:
    result: object = loaded(audit.query)(rows)
    if not hasattr(result, "sparkSession"):
        raise DeclarationError(
            found=f"audit '{audit.name}': its function gave {type(result).__name__}",
            expected="a data frame of the rows that fail",
        )
    return cast("DataFrame", result)
