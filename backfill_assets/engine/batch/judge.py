"""Judge a batch: hold what the one aggregation measured against what the audits allow."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, assert_never

from backfill_assets.errors import RequestError
from backfill_assets.models.audit import (
    ROWS,
    Audit,
    Reconciles,
    References,
    RowCountWithin,
    RowRule,
    Unique,
    total_words,
)
from backfill_assets.models.audit_result import AuditResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import CellProfile, Content

_MOST_CELLS = 20
_MOST_DIGITS = 100


def judge(
    audits: Iterable[Audit],
    profiles: Sequence[CellProfile],
    previous: Mapping[Interval, Content],
    cadence: Cadence,
) -> tuple[AuditResult, ...]:
    """Give the result of every audit of a batch.

    Args:
        audits: what the model declares, schema rules included.
        profiles: what the batch's cells would hold.
        previous: what the same cells hold now, for those that were ready before.
        cadence: for the names of cells.

    Raises:
        RequestError: a profile says nothing of one of the audits.
    """
    in_order = sorted(profiles, key=lambda profile: profile.cell)
    return tuple(_judge(audit, in_order, previous, cadence.key) for audit in audits)


def _judge(
    audit: Audit,
    profiles: Sequence[CellProfile],
    previous: Mapping[Interval, Content],
    key: Callable[[Interval], str],
) -> AuditResult:
    match audit:
        case RowRule() | References():
            return _rows(audit, profiles, key, allowed=audit.allowed)
        case Unique():
            return _rows(audit, profiles, key, allowed=0.0)
        case RowCountWithin():
            return _row_counts(audit, profiles, previous, key)
        case Reconciles():
            return _sums(audit, profiles, key)
        case _:
            assert_never(audit)


def _rows(
    audit: RowRule | References | Unique,
    profiles: Sequence[CellProfile],
    key: Callable[[Interval], str],
    *,
    allowed: float,
) -> AuditResult:
    failing = {
        profile.cell: _measured(profile.failing, audit, profile.cell, key) for profile in profiles
    }
    rows, bad = sum(profile.content.rows for profile in profiles), sum(failing.values())
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=bad <= Fraction(str(allowed)) * rows,  # a float's 0.29 of 100 is less than 29
        found=f"{bad:,} of {rows:,} rows fail {_meaning(audit)}",
        allowed=f"{allowed:.2%} of rows" if allowed else "0 rows",
        failing_rows=bad,
        cells=_keys((cell for cell, count in failing.items() if count), key),
    )


def _meaning(audit: RowRule | References | Unique) -> str:
    match audit:
        case RowRule():
            return audit.predicate
        case References():
            return f"`{audit.column}` in {audit.upstream}.{audit.to_column}"
        case Unique():
            return f"unique({', '.join(audit.columns)})"


def _row_counts(
    audit: RowCountWithin,
    profiles: Sequence[CellProfile],
    previous: Mapping[Interval, Content],
    key: Callable[[Interval], str],
) -> AuditResult:
    deltas = {
        profile.cell: _delta(previous[profile.cell].rows, profile.content.rows)
        for profile in profiles
        if profile.cell in previous
    }
    worst = max(deltas, key=lambda cell: deltas[cell], default=None)
    outside = [cell for cell, delta in deltas.items() if delta > Fraction(str(audit.fraction))]
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found="no cell was published before"
        if worst is None
        else f"rows of {key(worst)} differ by {float(deltas[worst]):.2%} from what is published",
        allowed=f"{audit.fraction:.2%} per cell",
        cells=_keys(outside, key),
    )


def _delta(before: int, now: int) -> Fraction:
    """How much a number of rows differs, as a part of what it was; nothing counts as one row."""
    return Fraction(abs(now - before), max(before, 1))


def _sums(
    audit: Reconciles, profiles: Sequence[CellProfile], key: Callable[[Interval], str]
) -> AuditResult:
    sums = {
        profile.cell: _pair(_measured(profile.sums, audit, profile.cell, key))
        for profile in profiles
    }
    tolerance = Fraction(str(audit.tolerance))
    unsummed = [cell for cell, pair in sums.items() if pair is None]
    known = {cell: pair for cell, pair in sums.items() if pair is not None}
    if unsummed:
        return _without_sum(audit, _keys(unsummed, key))
    gaps = {cell: abs(own - theirs) for cell, (own, theirs) in known.items()}
    outside = [cell for cell, gap in gaps.items() if gap > tolerance * abs(known[cell][1])]
    worst = max(outside, key=lambda cell: gaps[cell], default=None)
    own, theirs = _total(known.values()) if worst is None else known[worst]
    where = "" if worst is None else f" in {key(worst)}"
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"{total_words(audit.column)} = {_number(own)} against {_number(theirs)} in "
        f"{_theirs(audit)}{where}",
        allowed=_allowed_gap(audit),
        cells=_keys(outside, key),
    )


def _without_sum(audit: Reconciles, cells: tuple[str, ...]) -> AuditResult:
    """A sum over NaN, infinite or huge values equals nothing, so it does not reconcile."""
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=False,
        found=f"{audit.column}, or {_theirs(audit)}, holds NaN, infinite or huge "
        f"values in {cells[0]}: they have no sum",
        allowed=_allowed_gap(audit),
        cells=cells,
    )


def _theirs(audit: Reconciles) -> str:
    if audit.to_column == ROWS:
        return f"the {total_words(ROWS)} of {audit.upstream}"
    return f"{audit.upstream}.{audit.to_column}"


def _allowed_gap(audit: Reconciles) -> str:
    return f"{audit.tolerance:.2%} per cell" if audit.tolerance else "no difference per cell"


def _pair(texts: tuple[str, str]) -> tuple[Fraction, Fraction] | None:
    """Read both sums; None where one of them has none."""
    own, theirs = texts
    if "NaN" in texts:
        return None
    return Fraction(own), Fraction(theirs)


def _total(pairs: Iterable[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    listed = list(pairs)
    return sum((own for own, _ in listed), Fraction(0)), sum(
        (theirs for _, theirs in listed), Fraction(0)
    )


def _number(exact: Fraction) -> str:
    """Write an exact sum in full: both parts are decimals, so this ends."""
    with localcontext(prec=_MOST_DIGITS):
        return f"{(Decimal(exact.numerator) / Decimal(exact.denominator)).normalize():,f}"


_Measurement = TypeVar("_Measurement")


def _measured(
    measured: Mapping[str, _Measurement],
    audit: Audit,
    cell: Interval,
    key: Callable[[Interval], str],
) -> _Measurement:
    if audit.name not in measured:
        raise RequestError(
            found=f"audit '{audit.name}' has no measurement for cell {key(cell)}",
            expected="one per cell of the batch",
            do="This is a defect of the profile: report it, nothing was committed",
        )
    return measured[audit.name]


def _keys(cells: Iterable[Interval], key: Callable[[Interval], str]) -> tuple[str, ...]:
    return tuple(key(cell) for cell in list(cells)[:_MOST_CELLS])
