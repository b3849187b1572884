"""The rules for audits of a model that can be told without its rows: what would fail every batch is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.audit import (
    ROWS_TABLE,
    KnownRows,
    NearNeighbours,
    NearPublished,
    NumberWithin,
    Reconciles,
    RowRule,
    SqlAudit,
)
from backfill_assets.models.column import canonical_type, is_numeric
from backfill_assets.models.number import Of
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.spark_tokens import UnreadableSqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.audit import Audit
    from backfill_assets.models.model import Model

_OVER_ROWS = (exp.AggFunc, exp.Window, exp.Query, exp.Placeholder)
_READ_AS_ROWS = "rows_of_the_batch"


def check_audits(model: Model) -> None:
    """Refuse audits that can't be run over a model's rows, or that would fail all of them.

    Raises:
        DeclarationError: a row rule looks at several rows, or a query of the author's is none, or reads a table.
        DeclarationError: a sum is one of values that have none, or known rows have no cell.
    """
    for audit in model.audits:
        for found, expected in _wrong(model, audit):
            raise DeclarationError(
                found=f"model '{model.name}': found audit '{audit.name}' {found}", expected=expected
            )


def _wrong(model: Model, audit: Audit) -> Iterator[tuple[str, str]]:
    """Give pairs of what was found and what was expected."""
    match audit:
        case RowRule():
            yield from _of_several_rows(audit)
        case SqlAudit():
            yield from _wrong_query(audit)
        case KnownRows() if model.cadence.unit is not Unit.WHOLE and not all(
            row.when for row in audit.rows
        ):
            expected = f"time_column='{model.time_column}': it says in which cell a row lies"
            yield "without a time column", expected
        case Reconciles():
            yield from _without_sum(model, audit.column)
        case NumberWithin() | NearPublished() | NearNeighbours():
            is_sum = audit.number.of in {Of.TOTAL, Of.PERCENTILE}
            yield from _without_sum(model, audit.number.column) if is_sum else ()
        case _:
            return


def _of_several_rows(rule: RowRule) -> Iterator[tuple[str, str]]:
    """Find what no single row answers; the predicate was read before."""
    for node in sqlglot.parse_one(rule.predicate, dialect="spark").find_all(*_OVER_ROWS):
        yield (
            f"with `{node.sql(dialect='spark')}` in its predicate",
            "a condition over one row; sql_audit() looks at several",
        )


def _wrong_query(audit: SqlAudit) -> Iterator[tuple[str, str]]:
    try:
        query = SqlQuery(audit.sql.replace(ROWS_TABLE, _READ_AS_ROWS))
    except (DeclarationError, UnreadableSqlError) as error:
        said = error.found.replace(_READ_AS_ROWS, ROWS_TABLE)
        yield (
            f"that can't be read: {said}",
            f"one query of Spark SQL over {ROWS_TABLE}, without parameters",
        )
        return
    others = query.tables() - {_READ_AS_ROWS}
    if others:
        yield (
            f"that reads {', '.join(sorted(others))}",
            f"a query over {ROWS_TABLE} alone; references() and reconciles() compare with an upstream",
        )
    if query.parameters():
        yield (
            f"with :{min(query.parameters())}",
            f"a query without parameters: {ROWS_TABLE} are the batch's",
        )


def _without_sum(model: Model, column: str) -> Iterator[tuple[str, str]]:
    """Find a column whose values can't be added; a text may hold numbers."""
    dtypes = (canonical_type(each.dtype) for each in model.schema if each.name == column)
    for dtype in dtypes:
        if not is_numeric(dtype) and dtype != "string":
            yield f"on '{column}', which is {dtype}", "a column of numbers"
