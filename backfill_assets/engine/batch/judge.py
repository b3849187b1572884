"""Judge a batch: hold what the one aggregation measured against what the audits allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, assert_never

from backfill_assets.errors import RequestError
from backfill_assets.intervals.durations import duration_text
from backfill_assets.intervals.interval import EPOCH
from backfill_assets.intervals.text import counted
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
_HUGE = Decimal(10) ** 40
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
    batch = _Batch(in_order, previous, cadence.key)
    return tuple(_judge(audit, batch) for audit in audits)


_Measurement = TypeVar("_Measurement")


@dataclass(frozen=True, slots=True)
class _Batch:
    """The cells of a batch.

    Attributes:
        profiles: what they would hold, in order.
        previous: what those hold now that were ready before.
        key: names a cell.
    """

    profiles: Sequence[CellProfile]
    previous: Mapping[Interval, Content]
    key: Callable[[Interval], str]

    @property
    def rebuilt(self) -> list[CellProfile]:
        """Those of cells that were ready before."""
        return [profile for profile in self.profiles if profile.cell in self.previous]

    def measured(
        self, audit: Audit, of: Callable[[CellProfile], Mapping[str, _Measurement]]
    ) -> dict[Interval, _Measurement]:
        """Give what was measured for an audit, cell by cell."""
        for profile in self.profiles:
            if audit.name not in of(profile):
                raise RequestError(
                    found=f"audit '{audit.name}' has no measurement for cell {self.key(profile.cell)}",
                    expected="one per cell of the batch",
                    do="This is a defect of the profile: report it, nothing was committed",
                )
        return {profile.cell: of(profile)[audit.name] for profile in self.profiles}

    def keys(self, cells: Iterable[Interval]) -> tuple[str, ...]:
        """Name the first of some cells."""
        return tuple(map(self.key, islice(cells, _MOST_CELLS)))


def _judge(  # noqa: C901, PLR0911 - one case for each audit
    audit: Audit, batch: _Batch
) -> AuditResult:
    match audit:
        case RowRule() | References():
            return _rows(audit, batch, allowed=audit.allowed)
        case Unique() | SqlAudit() | PythonAudit():
            return _rows(audit, batch, allowed=0.0)
        case KnownRows() | Complete():
            return _missing(audit, batch)
        case NumberWithin() | NearNeighbours():
            return _numbers(audit, batch)
        case Fresh():
            return _fresh(audit, batch)
        case NearPublished():
            return _near_published(audit, batch)
        case RowCountWithin():
            return _row_counts(audit, batch)
        case Reconciles():
            return _sums(audit, batch)
        case _:
            assert_never(audit)


def _rows(
    audit: RowRule | References | Unique | SqlAudit | PythonAudit, batch: _Batch, *, allowed: float
) -> AuditResult:
    """Judge failing rows cell by cell: the same cells pass or fail, whatever batch they are in."""
    failing = batch.measured(audit, lambda profile: profile.failing)
    rows = {profile.cell: profile.content.rows for profile in batch.profiles}
    most = Fraction(str(allowed))  # a float's 0.29 of 100 is less than 29
    outside = [cell for cell, bad in failing.items() if bad > most * rows[cell]]
    bad, first = sum(failing.values()), next(iter(outside), None)
    where = (
        f", {failing[first]:,} of {rows[first]:,} in {batch.key(first)}"
        if first and allowed
        else ""
    )
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"{bad:,} of {sum(rows.values()):,} rows fail {_meaning(audit)}{where}",
        allowed=f"{allowed:.2%} of a cell's rows" if allowed else "0 rows",
        failing_rows=bad,
        cells=batch.keys(outside),
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


def _missing(audit: KnownRows | Complete, batch: _Batch) -> AuditResult:
    """Judge rows, or entities, that have to be there, cell by cell."""
    lacking = batch.measured(audit, lambda profile: profile.failing)
    most = audit.allowed if isinstance(audit, Complete) else 0
    outside = [cell for cell, count in lacking.items() if count > most]
    worst = max(lacking, key=lambda cell: lacking[cell], default=None)
    where = (
        f", {lacking[worst]:,} of them in {batch.key(worst)}" if worst and lacking[worst] else ""
    )
    total = sum(lacking.values())
    what = (
        f"{counted(total, 'known row')} missing or with different values"
        if isinstance(audit, KnownRows)
        else f"{counted(total, 'value')} of {', '.join(audit.columns)} missing where expected"
    )
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"{what}{where}",
        allowed=f"{most:,} per cell",
        failing_rows=total,
        cells=batch.keys(outside),
    )


def _numbers(audit: NumberWithin | NearNeighbours, batch: _Batch) -> AuditResult:
    """Judge a number of each cell against a range: a declared one, or that of the cells around."""
    numbers = batch.measured(audit, lambda profile: profile.numbers)
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
        else f"{words} = {outside[first].format(batch.key(first))}",
        allowed=band_words(audit)
        if isinstance(audit, NumberWithin)
        else f"within {audit.band:g} deviations of {counted(audit.neighbours, 'cell')} on either side",
        cells=batch.keys(sorted(outside)),
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


def _fresh(audit: Fresh, batch: _Batch) -> AuditResult:
    """Judge how far the newest value of each cell lies before its end; a cell without one fails."""
    numbers = batch.measured(audit, lambda profile: profile.numbers)
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
        found=_fresh_words(audit, gaps, without, batch.key),
        allowed=fresh_words(audit),
        cells=batch.keys(sorted((*without, *late))),
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


def _near_published(audit: NearPublished, batch: _Batch) -> AuditResult:
    """Judge a number against what the same cells publish, cell by cell or all together."""
    pairs, unsummed = _near_pairs(audit, batch)
    if audit.together and pairs:
        pairs = {min(pairs): _total(pairs.values())}
    slack, most = Fraction(str(audit.fraction)), Fraction(str(audit.absolute))
    outside = [
        cell
        for cell, (own, theirs) in pairs.items()
        if abs(own - theirs) > max(slack * abs(theirs), most)
    ]
    named = outside or [*pairs]
    worst = max(named, key=lambda cell: abs(pairs[cell][0] - pairs[cell][1]), default=None)
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside and not unsummed,
        found=_near_words(audit, pairs, worst, unsummed, batch.key),
        allowed=f"{slack_words(audit)} {'together' if audit.together else 'per cell'}",
        cells=batch.keys((*outside, *unsummed)),
    )


def _near_pairs(
    audit: NearPublished, batch: _Batch
) -> tuple[dict[Interval, tuple[Fraction, Fraction]], list[Interval]]:
    """Give the number of each cell that was published, with the published one; and cells without a sum."""
    pairs: dict[Interval, tuple[Fraction, Fraction]] = {}
    unsummed: list[Interval] = []
    rebuilt = replace(batch, profiles=batch.rebuilt)
    for cell, number in rebuilt.measured(audit, lambda profile: profile.numbers).items():
        empty = batch.previous[cell].rows == 0
        published = audit.number.without_rows if empty else number.published
        if _NO_SUM in {number.own, published}:
            unsummed.append(cell)
        own, theirs = _exact(number.own), _exact(published)
        if own is not None and theirs is not None:
            pairs[cell] = own, theirs
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
    """Write a number for people: at most six decimal places, or six digits of one that is huge."""
    with localcontext(prec=_MOST_DIGITS):
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
        if abs(value) >= _HUGE:
            return f"{value:.6g}"
        return f"{round(value, 6).normalize():,f}"


def _span(low: Fraction | None, high: Fraction | None) -> str:
    return (
        f"[{'-inf' if low is None else _rounded(low)}, {'inf' if high is None else _rounded(high)}]"
    )


def _row_counts(audit: RowCountWithin, batch: _Batch) -> AuditResult:
    deltas = {
        profile.cell: _delta(batch.previous[profile.cell].rows, profile.content.rows)
        for profile in batch.rebuilt
    }
    worst = max(deltas, key=lambda cell: deltas[cell], default=None)
    outside = [cell for cell, delta in deltas.items() if delta > Fraction(str(audit.fraction))]
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found="no cell was published before"
        if worst is None
        else f"rows of {batch.key(worst)} differ by {float(deltas[worst]):.2%} from what is published",
        allowed=f"{audit.fraction:.2%} per cell",
        cells=batch.keys(outside),
    )


def _delta(before: int, now: int) -> Fraction:
    """How much a number of rows differs, as a part of what it was; nothing counts as one row."""
    return Fraction(abs(now - before), max(before, 1))


def _sums(audit: Reconciles, batch: _Batch) -> AuditResult:
    measured = batch.measured(audit, lambda profile: profile.sums)
    sums = {cell: _pair(texts) for cell, texts in measured.items()}
    tolerance = Fraction(str(audit.tolerance))
    unsummed = [cell for cell, pair in sums.items() if pair is None]
    pairs = {cell: pair for cell, pair in sums.items() if pair is not None}
    if unsummed:
        return _without_sum(audit, batch.keys(unsummed))
    gaps = {cell: abs(own - theirs) for cell, (own, theirs) in pairs.items()}
    outside = [cell for cell, gap in gaps.items() if gap > tolerance * abs(pairs[cell][1])]
    worst = max(outside, key=lambda cell: gaps[cell], default=None)
    own, theirs = _total(pairs.values()) if worst is None else pairs[worst]
    where = "" if worst is None else f" in {batch.key(worst)}"
    return AuditResult(
        audit=audit.name,
        severity=audit.severity,
        passed=not outside,
        found=f"{total_words(audit.column)} = {_number(own)} against {_number(theirs)} in "
        f"{_theirs(audit)}{where}",
        allowed=_allowed_gap(audit),
        cells=batch.keys(outside),
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
