"""Judge a batch: hold what the one aggregation measured against what the audits allow."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, assert_never

from backfill_assets.models.audit import (
    Audit,
    Reconciles,
    References,
    RowCountWithin,
    RowRule,
    Unique,
)
from backfill_assets.models.audit_result import AuditResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import CellProfile, Content

_MOST_CELLS = 20


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
    """
    return tuple(_judge(audit, profiles, previous, cadence.key) for audit in audits)


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
    failing = {profile.cell: profile.failing.get(audit.name, 0) for profile in profiles}
    rows, bad = sum(profile.content.rows for profile in profiles), sum(failing.values())
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=bad <= allowed * rows,
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
        profile.cell: abs(profile.content.rows - previous[profile.cell].rows)
        / max(previous[profile.cell].rows, 1)
        for profile in profiles
        if profile.cell in previous
    }
    worst = max(deltas, key=lambda cell: deltas[cell], default=None)
    found = (
        "no cell was published before"
        if worst is None
        else (f"rows of {key(worst)} differ by {deltas[worst]:.2%} from what is published")
    )
    outside = [cell for cell, delta in deltas.items() if delta > audit.fraction]
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=found,
        allowed=f"{audit.fraction:.2%} per cell",
        cells=_keys(outside, key),
    )


def _sums(
    audit: Reconciles, profiles: Sequence[CellProfile], key: Callable[[Interval], str]
) -> AuditResult:
    sums = {
        profile.cell: tuple(map(Decimal, profile.sums.get(audit.name, ("0", "0"))))
        for profile in profiles
    }
    tolerance = Decimal(str(audit.tolerance))
    outside = [
        cell for cell, (own, theirs) in sums.items() if abs(own - theirs) > tolerance * abs(theirs)
    ]
    own, theirs = (sum((pair[side] for pair in sums.values()), Decimal(0)) for side in (0, 1))
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"sum({audit.column}) = {own:,} against {theirs:,} in {audit.upstream}",
        allowed=f"{audit.tolerance:.2%} per cell" if audit.tolerance else "no difference per cell",
        cells=_keys(outside, key),
    )


def _keys(cells: Iterable[Interval], key: Callable[[Interval], str]) -> tuple[str, ...]:
    return tuple(key(cell) for cell in list(cells)[:_MOST_CELLS])
