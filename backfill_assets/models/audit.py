"""The declarations of audits: blocking or warning tests that a batch must pass before its commit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backfill_assets.errors import DeclarationError
from backfill_assets.models.column import one_of, quoted, sql_literal


def _empty_audit(*, audit: str, missing: str) -> DeclarationError:
    return DeclarationError(
        found=f"audit '{audit}' has no {missing}, so it could not fail (or not pass) a single row",
        do="give it one, or leave it out",
    )


class Severity(StrEnum):
    """Whether a failed audit keeps the batch from being committed."""

    BLOCKING = "blocking"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class RowRule:
    """Every row obeys a Spark SQL predicate; at most `allowed` (a fraction of rows) may not.

    A predicate that is NULL for a row does not fail it: nullability is a rule of its own.
    """

    name: str
    predicate: str
    allowed: float = 0.0
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows share a value of `columns`, in the batch or with the table's other cells."""

    name: str
    columns: tuple[str, ...]
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class RowCountWithin:
    """The row count of each cell stays within a fraction of its previous row count."""

    name: str
    fraction: float
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class References:
    """Every non-null value of `column` exists in `to_column` of `upstream`."""

    name: str
    column: str
    upstream: str
    to_column: str
    allowed: float = 0.0
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class Reconciles:
    """The sum of `column` equals the sum of `to_column` of `upstream` over the same cells.

    Either may be `ROWS`: then the number of rows stands in place of a sum.
    """

    name: str
    column: str
    upstream: str
    to_column: str
    tolerance: float = 0.0
    severity: Severity = Severity.BLOCKING


ROWS = "*"
"""In the place of a column of `Reconciles`: the number of rows."""


def total_words(column: str) -> str:
    """Name the sum: of a column, or of the rows."""
    return "number of rows" if column == ROWS else f"sum({column})"


Audit = RowRule | Unique | RowCountWithin | References | Reconciles


def audit_words(audit: Audit) -> str:
    """Say in one sentence what an audit demands, and what a failure does."""
    match audit:
        case RowRule():
            demand = f"Every row obeys {audit.predicate}{_but(audit.allowed)}."
        case Unique():
            demand = f"No two rows of the table share {', '.join(audit.columns)}."
        case RowCountWithin():
            demand = f"A rebuilt cell keeps its number of rows within {audit.fraction:.3%}."
        case References():
            target = f"{audit.upstream}.{audit.to_column}"
            demand = f"Every value of {audit.column} exists in {target}{_but(audit.allowed)}."
        case Reconciles():
            totals = f"{total_words(audit.column)} equals {total_words(audit.to_column)}"
            within = f", within {audit.tolerance:.3%}" if audit.tolerance else ""
            demand = f"Over the same cells {totals} of {audit.upstream}{within}."
    blocks = audit.severity is Severity.BLOCKING
    return (
        f"{demand} A failure {'keeps the batch from being committed' if blocks else 'only warns'}."
    )


def _but(allowed: float) -> str:
    return f", but for at most {allowed:.3%} of the rows" if allowed else ""


def row_rule(name: str, predicate: str, *, allowed: float = 0.0, warn: bool = False) -> RowRule:
    """Audit every row with a Spark SQL predicate."""
    return RowRule(name, predicate, allowed, _severity(warn=warn))


def not_null(column: str, *, allowed: float = 0.0, warn: bool = False) -> RowRule:
    """Audit that `column` has a value, in all rows but the allowed fraction."""
    return RowRule(
        f"not_null_{column}", f"{quoted(column)} IS NOT NULL", allowed, _severity(warn=warn)
    )


def accepted_range(
    column: str, low: float | None, high: float | None, *, warn: bool = False
) -> RowRule:
    """Audit that `column` lies in ``[low, high]``; None leaves a side open."""
    sides = [
        f"{quoted(column)} {sign} {sql_literal(bound)}"
        for sign, bound in ((">=", low), ("<=", high))
        if bound is not None
    ]
    if not sides:
        raise _empty_audit(audit=f"accepted_range_{column}", missing="bound")
    return RowRule(f"accepted_range_{column}", " AND ".join(sides), 0.0, _severity(warn=warn))


def accepted_values(column: str, values: tuple[object, ...], *, warn: bool = False) -> RowRule:
    """Audit that `column` is one of the values."""
    if not values:
        raise _empty_audit(audit=f"accepted_values_{column}", missing="value")
    rule = f"{quoted(column)} IN ({one_of(values)})"
    return RowRule(f"accepted_values_{column}", rule, 0.0, _severity(warn=warn))


def unique(*columns: str, warn: bool = False) -> Unique:
    """Audit that no two rows of the table share these columns."""
    return Unique(f"unique_{'_'.join(columns)}", columns, _severity(warn=warn))


def row_count_within(fraction: float, *, warn: bool = False) -> RowCountWithin:
    """Audit that a rebuilt cell keeps its number of rows, give or take a fraction."""
    return RowCountWithin("row_count_within", fraction, _severity(warn=warn))


def references(
    column: str, upstream: str, to_column: str, *, allowed: float = 0.0, warn: bool = False
) -> References:
    """Audit referential integrity against an upstream."""
    name = f"references_{column}"
    return References(name, column, upstream, to_column, allowed, _severity(warn=warn))


def reconciles(
    column: str,
    upstream: str,
    to_column: str | None = None,
    *,
    tolerance: float = 0.0,
    warn: bool = False,
) -> Reconciles:
    """Audit that a sum agrees with the upstream's, within a fraction of the upstream's sum.

    ``"*"`` as a column stands for the number of rows, so that ``reconciles("orders", "shop.raw_orders",
    "*")`` compares a sum with a count.
    """
    name = f"reconciles_{'rows' if column == ROWS else column}"
    return Reconciles(name, column, upstream, to_column or column, tolerance, _severity(warn=warn))


def _severity(*, warn: bool) -> Severity:
    return Severity.WARNING if warn else Severity.BLOCKING
