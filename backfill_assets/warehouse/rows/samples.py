"""Sample a few of the rows that fail an audit, for its message and its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.audit import (
    Audit,
    Complete,
    KnownRows,
    PythonAudit,
    References,
    RowRule,
    SqlAudit,
    Unique,
)
from backfill_assets.models.column import all_given, quoted
from backfill_assets.warehouse.rows.inputs import read_whole
from backfill_assets.warehouse.rows.json_rows import as_json
from backfill_assets.warehouse.rows.own_audits import NUMBER, failing_by_query, lacking_entities
from backfill_assets.warehouse.rows.profile import rows_held_elsewhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backfill_assets.warehouse.rows.profile import Subject

_KNOWN, _SAME = "_known value", "_same rows"


def failing_rows(  # noqa: PLR0911 - one case for each audit
    rows: DataFrame, audit: Audit, subject: Subject, limit: int = 10
) -> tuple[str, ...]:
    """Give up to `limit` rows of a (cached) batch that fail an audit, as JSON objects with masked values.

    Audits of whole cells (row counts, sums) have no failing rows. Of entities that lack, all columns are shown but
    those that never are.
    """
    shown = subject.model.shown
    match audit:
        case RowRule():
            return as_json(rows.where(f"NOT coalesce({audit.predicate}, TRUE)"), limit, shown)
        case References():
            return as_json(_unreferenced(rows, audit, subject), limit, shown)
        case Unique():
            return _repeated(rows, audit, subject, limit)
        case Complete():
            lacking = lacking_entities(rows, audit, subject).drop(NUMBER)
            return as_json(lacking, limit, {*audit.columns} - subject.model.hidden)
        case KnownRows():
            wrong = " OR ".join(f"({row.where} AND NOT ({row.holds}))" for row in audit.rows)
            return as_json(rows.where(wrong), limit, shown)
        case SqlAudit() | PythonAudit():
            failures = failing_by_query(rows, audit, subject.model, subject.cells)
            return as_json(failures, limit, shown)
        case _:
            return ()


def _unreferenced(rows: DataFrame, audit: References, subject: Subject) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    upstream = read_whole(rows.sparkSession, subject.inputs[audit.upstream])
    values = upstream.select(F.col(quoted(audit.to_column)).alias(_KNOWN))
    on = F.expr(f"{quoted(audit.column)} = {quoted(_KNOWN)}")
    return rows.where(f"{quoted(audit.column)} IS NOT NULL").join(values, on, "left_anti")


def _repeated(rows: DataFrame, audit: Unique, subject: Subject, limit: int) -> tuple[str, ...]:
    from pyspark.sql import Window, functions as F  # noqa: PLC0415

    same = Window.partitionBy(*(quoted(name) for name in audit.columns))
    counted = rows.withColumn(_SAME, F.count(F.lit(1)).over(same))
    same_rows = counted.where(f"{quoted(_SAME)} > 1 AND {all_given(audit.columns)}").drop(_SAME)
    repeated = as_json(same_rows, limit, subject.model.shown)
    clashing = rows_held_elsewhere(rows, audit, subject)
    if repeated or clashing is None:
        return repeated
    return as_json(clashing, limit, subject.model.shown)
