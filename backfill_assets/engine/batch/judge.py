"""Judge a batch: hold what the one aggregation measured against what the audits allow."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, assert_never

from backfill_assets.errors import RequestError
from backfill_assets.intervals.durations import duration_text
from backfill_assets.intervals.interval import EPOCH
from backfill_assets.models.audit import (
    ROWS,
    Audit,
    Complete,
    Fresh,
    KnownRows,
    NearNeighbours,
    NearPublished,
    NumberWithin,
    PythonAudit,
    Reconciles,
    References,
    RowCountWithin,
    RowRule,
    SqlAudit,
    Unique,
    total_words,
)
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.audit_words import band_words, fresh_words, slack_words
from backfill_assets.models.robust_band import robust_band

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import CellProfile, Content
    from backfill_assets.models.number import NumberFound

_MOST_CELLS = 20
_MOST_DIGITS = 100
_NO_SUM = "NaN"


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


def _judge(  # noqa: C901, PLR0911 - one case for each audit
    audit: Audit,
    profiles: Sequence[CellProfile],
    previous: Mapping[Interval, Content],
    key: Callable[[Interval], str],
) -> AuditResult:
    match audit:
        case RowRule() | References():
            return _rows(audit, profiles, key, allowed=audit.allowed)
        case Unique() | SqlAudit() | PythonAudit():
            return _rows(audit, profiles, key, allowed=0.0)
        case KnownRows() | Complete():
            return _missing(audit, profiles, key)
        case NumberWithin() | NearNeighbours():
            return _numbers(audit, profiles, key)
        case Fresh():
            return _fresh(audit, profiles, key)
        case NearPublished():
            return _near_published(audit, profiles, previous, key)
        case RowCountWithin():
            return _row_counts(audit, profiles, previous, key)
        case Reconciles():
            return _sums(audit, profiles, key)
        case _:
            assert_never(audit)


def _rows(
    audit: RowRule | References | Unique | SqlAudit | PythonAudit,
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


def _meaning(audit: RowRule | References | Unique | SqlAudit | PythonAudit) -> str:
    match audit:
        case RowRule():
            return audit.predicate
        case References():
            return f"`{audit.column}` in {audit.upstream}.{audit.to_column}"
        case Unique():
            return f"unique({', '.join(audit.columns)})"
        case SqlAudit():
            return f"the query {' '.join(audit.sql.split())}"
        case PythonAudit():
            return f"the function {audit.query.name}"


def _missing(
    audit: KnownRows | Complete,
    profiles: Sequence[CellProfile],
    key: Callable[[Interval], str],
) -> AuditResult:
    """Judge rows, or entities, that have to be there, cell by cell."""
    lacking = {
        profile.cell: _measured(profile.failing, audit, profile.cell, key) for profile in profiles
    }
    most = audit.allowed if isinstance(audit, Complete) else 0
    outside = [cell for cell, count in lacking.items() if count > most]
    worst = max(lacking, key=lambda cell: lacking[cell], default=None)
    where = f", {lacking[worst]:,} of them in {key(worst)}" if worst and lacking[worst] else ""
    what = (
        "known rows are missing or have different values"
        if isinstance(audit, KnownRows)
        else f"values of {', '.join(audit.columns)} are missing from their cells"
    )
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"{sum(lacking.values()):,} {what}{where}",
        allowed=f"{most:,} per cell",
        failing_rows=sum(lacking.values()),
        cells=_keys(outside, key),
    )


def _numbers(
    audit: NumberWithin | NearNeighbours,
    profiles: Sequence[CellProfile],
    key: Callable[[Interval], str],
) -> AuditResult:
    """Judge a number of each cell against a range: a declared one, or that of the cells around."""
    numbers = {
        profile.cell: _measured(profile.numbers, audit, profile.cell, key) for profile in profiles
    }
    outside = {
        cell: text
        for cell, number in numbers.items()
        if (text := _outside(number.own, *_range(audit, number)))
    }
    words, measured = audit.number.words, sum(number.own is not None for number in numbers.values())
    first = min(outside, default=None)
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"{words} as allowed in {measured:,} of {len(numbers):,} cells"
        if first is None
        else f"{words} = {outside[first].format(key(first))}",
        allowed=band_words(audit)
        if isinstance(audit, NumberWithin)
        else f"within {audit.band:g} deviations of {audit.neighbours} cells on either side",
        cells=_keys(sorted(outside), key),
    )


def _outside(own: str | None, low: Fraction | None, high: Fraction | None) -> str:
    """Say how a number lies outside of a range, with a place for its cell; empty where it does not."""
    if own is None:
        return ""
    exact = _exact(own)
    if exact is None:
        return f"{own} in {{}}: NaN, infinite or huge values are never within a range"
    if (low is not None and exact < low) or (high is not None and exact > high):
        return f"{_rounded(exact)} in {{}}, outside {_span(low, high)}"
    return ""


def _range(
    audit: NumberWithin | NearNeighbours, number: NumberFound
) -> tuple[Fraction | None, Fraction | None]:
    """Give the lowest and the highest allowed value; None for an open side."""
    if isinstance(audit, NumberWithin):
        return _bound(audit.low), _bound(audit.high)
    around = [exact for text in number.around if (exact := _exact(text)) is not None]
    return robust_band(around, audit.band) or (None, None)


def _fresh(
    audit: Fresh, profiles: Sequence[CellProfile], key: Callable[[Interval], str]
) -> AuditResult:
    """Judge how far the newest value of each cell lies before its end; a cell without one fails."""
    numbers = {
        profile.cell: _measured(profile.numbers, audit, profile.cell, key) for profile in profiles
    }
    gaps = {
        cell: cell.end - EPOCH - timedelta(microseconds=int(number.own))
        for cell, number in numbers.items()
        if number.own is not None
    }
    without = [cell for cell in numbers if cell not in gaps]
    late = [cell for cell, gap in gaps.items() if gap > timedelta(seconds=audit.seconds)]
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not without and not late,
        found=_fresh_words(audit, gaps, without, key),
        allowed=fresh_words(audit),
        cells=_keys(sorted((*without, *late)), key),
    )


def _fresh_words(
    audit: Fresh,
    gaps: Mapping[Interval, timedelta],
    without: Sequence[Interval],
    key: Callable[[Interval], str],
) -> str:
    worst = max(gaps, key=lambda cell: gaps[cell], default=None)
    empty = f"{len(without):,} of {len(gaps) + len(without):,} cells"
    if worst is None:
        return f"no {audit.number.words} in {empty}"
    before = duration_text(max(gaps[worst], timedelta(0)))
    rest = f", and none in {empty}, such as {key(without[0])}" if without else ""
    return f"{audit.number.words} {before} before the end of {key(worst)}{rest}"


def _near_published(
    audit: NearPublished,
    profiles: Sequence[CellProfile],
    previous: Mapping[Interval, Content],
    key: Callable[[Interval], str],
) -> AuditResult:
    """Judge a number against what the same cells publish, cell by cell or all together."""
    pairs, unsummed = _near_pairs(audit, profiles, previous, key)
    if audit.together and pairs:
        pairs = {min(pairs): _total(pairs.values())}
    slack, most = Fraction(str(audit.fraction)), Fraction(str(audit.absolute))
    outside = [
        cell
        for cell, (own, theirs) in pairs.items()
        if abs(own - theirs) > max(slack * abs(theirs), most)
    ]
    worst = max(pairs, key=lambda cell: abs(pairs[cell][0] - pairs[cell][1]), default=None)
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside and not unsummed,
        found=_near_words(audit, pairs, worst, unsummed, key),
        allowed=f"{slack_words(audit)} {'together' if audit.together else 'per cell'}",
        cells=_keys((*outside, *unsummed), key),
    )


def _near_pairs(
    audit: NearPublished,
    profiles: Sequence[CellProfile],
    previous: Mapping[Interval, Content],
    key: Callable[[Interval], str],
) -> tuple[dict[Interval, tuple[Fraction, Fraction]], list[Interval]]:
    """Give the number of each cell that was published, with the published one; and cells without a sum."""
    pairs: dict[Interval, tuple[Fraction, Fraction]] = {}
    unsummed: list[Interval] = []
    for profile in profiles:
        if profile.cell not in previous:
            continue
        number = _measured(profile.numbers, audit, profile.cell, key)
        empty = previous[profile.cell].rows == 0
        published = audit.number.without_rows if empty else number.published
        if _NO_SUM in {number.own, published}:
            unsummed.append(profile.cell)
        own, theirs = _exact(number.own), _exact(published)
        if own is not None and theirs is not None:
            pairs[profile.cell] = own, theirs
    return pairs, unsummed


def _near_words(
    audit: NearPublished,
    pairs: Mapping[Interval, tuple[Fraction, Fraction]],
    worst: Interval | None,
    unsummed: Sequence[Interval],
    key: Callable[[Interval], str],
) -> str:
    if unsummed:
        return f"{audit.number.words} of {key(unsummed[0])} holds NaN, infinite or huge values"
    if worst is None:
        return "no cell with such a number was published before"
    own, theirs = pairs[worst]
    change = f" ({float((own - theirs) / abs(theirs)):+.2%})" if theirs else ""
    where = "of all cells together" if audit.together else f"in {key(worst)}"
    return (
        f"{audit.number.words} {where} = {_rounded(own)} against {_rounded(theirs)} "
        f"published{change}"
    )


def _bound(value: float | None) -> Fraction | None:
    return None if value is None else Fraction(str(value))


def _exact(text: str | None) -> Fraction | None:
    """Read a measured number; None where it has no value, or none that is a number."""
    if text is None or text == _NO_SUM:
        return None
    value = Decimal(text)
    return Fraction(value) if value.is_finite() else None


def _rounded(exact: Fraction) -> str:
    """Write a number for people: at most six decimal places."""
    with localcontext(prec=_MOST_DIGITS):
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
        return f"{round(value, 6).normalize():,f}"


def _span(low: Fraction | None, high: Fraction | None) -> str:
    return (
        f"[{'-inf' if low is None else _rounded(low)}, {'inf' if high is None else _rounded(high)}]"
    )


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
    pairs = {cell: pair for cell, pair in sums.items() if pair is not None}
    if unsummed:
        return _without_sum(audit, _keys(unsummed, key))
    gaps = {cell: abs(own - theirs) for cell, (own, theirs) in pairs.items()}
    outside = [cell for cell, gap in gaps.items() if gap > tolerance * abs(pairs[cell][1])]
    worst = max(outside, key=lambda cell: gaps[cell], default=None)
    own, theirs = _total(pairs.values()) if worst is None else pairs[worst]
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
        f"values in {cells[0]}: they can't be summed",
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
