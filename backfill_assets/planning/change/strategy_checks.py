"""Run the checks that a strategy adds before its promotion, on checksums of cells.

Where checksums can't show what differs, the rows were compared (`in_doubt`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.models.audit import RowRule, not_null
from backfill_assets.models.number import EXACT
from backfill_assets.planning.plan.request import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from decimal import Decimal

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.compared import Group

Cells: TypeAlias = "Mapping[Interval, Content]"

EXPLAINED = "every difference explained"
"""The check of a dual run."""

_ROW_SET = "(rows)"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        name: of the check.
        passed: whether the promotion may go on.
        text: the numbers, in words.
    """

    name: str
    passed: bool
    text: str


@dataclass(frozen=True, slots=True)
class Expected:
    """The differences that the plan explains: the model's `Difference`, or all for a restated model.

    Attributes:
        rows: whether the row set may differ; then every column may.
        columns: columns that may differ; None for all.
        cells: cells in which anything may differ, because what they read had changed anyway.
        missing: whether rows may be gone; those that stay may not differ for that.
    """

    rows: bool = True
    columns: frozenset[str] | None = None
    cells: IntervalSet = field(default_factory=IntervalSet.empty)
    missing: bool = False

    def explains(self, column: str) -> bool:
        """Whether a changed value of a column follows from the plan's changes."""
        return self.rows or self.columns is None or column in self.columns


ComparedRows: TypeAlias = "Mapping[Interval, Group]"


@dataclass(frozen=True, slots=True)
class CellDifference:
    """A cell whose content differs from before.

    Attributes:
        cell: the interval.
        rows: whether other rows are in it.
        columns: columns with other values, those that are gone included; new ones are none.
        only_missing: whether the row set differs only by rows that are gone.
    """

    cell: Interval
    rows: bool
    columns: frozenset[str]
    only_missing: bool = False


@dataclass(frozen=True, slots=True)
class CheckedContents:
    """The contents that the checks compare.

    Attributes:
        old: what each cell holds that the environment publishes now.
        new: what each cell would hold after the promotion, those that stay included.
        planned: the cells that the plan builds.
        expected: what the plan explains.
        coverage: per new column, the fraction of its rows that have a value and the one declared
            (`declared_coverage`); None leaves the check out.
        totals: per numeric column of both, its sum before and after, over the time that both share
            and `expected` does not except; a sum is None where no row has a value, or one has no sum.
        looked: the comparison of rows in the cells that are `in_doubt`.
    """

    old: Cells
    new: Cells
    planned: IntervalSet
    expected: Expected = field(default_factory=Expected)
    coverage: Mapping[str, tuple[float, float]] | None = None
    totals: Mapping[str, tuple[Decimal | None, Decimal | None]] = field(
        default_factory=dict[str, "tuple[Decimal | None, Decimal | None]"]
    )
    looked: ComparedRows = field(default_factory=dict["Interval", "Group"])

    @property
    def differences(self) -> tuple[CellDifference, ...]:
        """The cells of both that differ."""
        return differences(self.old, self.new, self.looked)


def check(strategy: Strategy, compared: CheckedContents) -> tuple[CheckResult, ...]:
    """Make the checks of a model's strategy.

    Args:
        strategy: the model's.
        compared: the numbers.
    """
    match strategy:
        case Strategy.PARTITION_REPAIR:
            return (_counts_fit(compared), _neighbours(compared))
        case Strategy.COLUMN_ENRICHMENT:
            equal = _equal_but_new(compared)
            return (equal,) if compared.coverage is None else (equal, _covered(compared.coverage))
        case Strategy.DUAL_RUN:
            return (_explained(compared),)
        case Strategy.FULL_REBUILD:
            return tuple(_reconciled(compared))


def differences(old: Cells, new: Cells, looked: ComparedRows) -> tuple[CellDifference, ...]:
    """Compare the cells that both hold, in order of time; where rows were compared, they decide."""
    cells = sorted(old.keys() & new.keys(), key=lambda cell: cell.start)
    differing = (
        _difference(cell, old[cell], new[cell]) for cell in cells if old[cell] != new[cell]
    )
    return tuple(
        _by_rows(difference, looked[difference.cell], old[difference.cell], new[difference.cell])
        if difference.cell in looked
        else difference
        for difference in differing
    )


def shared_time(old: Cells, new: Cells, excepted: IntervalSet) -> IntervalSet:
    """Give the time whose rows can be summed on both sides.

    These are the cells of both; where the cadence has changed, the stretches that whole cells of either tile.

    Args:
        old: what each cell holds that is published.
        new: what each cell would hold.
        excepted: time that is left out.
    """
    time = (IntervalSet.of(old) & IntervalSet.of(new)) - excepted
    while time != (tiled := _whole(old, time) & _whole(new, time)):
        time = tiled
    return time


def _whole(cells: Iterable[Interval], time: IntervalSet) -> IntervalSet:
    return IntervalSet.of(cell for cell in cells if cell in time)


def in_doubt(old: Cells, new: Cells, expected: Expected) -> IntervalSet:
    """Give the cells of both sides whose checksums can't show whether an unexplained part differs.

    A checksum that an earlier release made of rounded values equals no new one. And where rows may be
    gone, those that stay must be compared by themselves.
    """
    return IntervalSet.of(
        difference.cell
        for difference in differences(old, new, {})
        if (difference.rows and expected.missing)
        or old[difference.cell].in_doubt(new[difference.cell])
    )


def _difference(cell: Interval, old: Content, new: Content) -> CellDifference:
    return CellDifference(
        cell,
        rows=(old.rows, old.key) != (new.rows, new.key),
        columns=frozenset(
            name for name, checksum in old.columns.items() if new.columns.get(name) != checksum
        ),
    )


def _by_rows(difference: CellDifference, rows: Group, old: Content, new: Content) -> CellDifference:
    """Keep the part of a difference that its rows confirm; removed columns have no rows to compare."""
    changed = {name for name, measure in rows.columns.items() if measure.changed}
    columns = (name for name in difference.columns if name in changed or name not in new.columns)
    fewer = old.rows - new.rows
    return replace(
        difference,
        rows=difference.rows and bool(rows.keys_added or rows.keys_removed or fewer),
        columns=frozenset(columns),
        only_missing=rows.keys_added == 0 and rows.keys_removed == fewer,
    )


def declared_coverage(model: Model, column: str) -> float:
    """The least fraction of rows in which a column must have a value; 0: not all may be NULL."""
    if any(declared.name == column and not declared.nullable for declared in model.schema):
        return 1.0
    rule = not_null(column)
    allowed = [
        audit.allowed
        for audit in model.audits
        if isinstance(audit, RowRule) and audit.predicate == rule.predicate
    ]
    return 1 - min(allowed) if allowed else 0.0


def _counts_fit(compared: CheckedContents) -> CheckResult:
    """All rows afterwards are those that stay and those that were built."""
    old, new, planned = compared.old, compared.new, compared.planned
    built = sum(content.rows for cell, content in new.items() if cell in planned)
    stay = sum(content.rows for cell, content in old.items() if cell not in planned)
    total = sum(content.rows for content in new.values())
    lost = [cell for cell in old if cell not in new]
    text = f"{counted(total, 'row')} = {stay:,} that stay + {built:,} repaired"
    if lost:
        text += f"; {counted(len(lost), 'cell')} would no longer be published, {_first(lost)} first"
    elif total != stay + built:
        text = text.replace("=", "are not")
    return CheckResult("counts fit", total == stay + built and not lost, text)


def _neighbours(compared: CheckedContents) -> CheckResult:
    others = [cell for cell in compared.old if cell not in compared.planned]
    differ = {
        difference.cell
        for difference in compared.differences
        if difference.rows or difference.columns
    }
    moved = [cell for cell in others if cell not in compared.new or cell in differ]
    text = f"{counted(len(others), 'cell')} outside the plan: equal byte for byte"
    if moved:
        text = (
            f"{counted(len(moved), 'cell')} outside the plan: not as before, {_first(moved)} first"
        )
    return CheckResult("neighbours equal", not moved, text)


def _equal_but_new(compared: CheckedContents) -> CheckResult:
    """Only new columns differ; here no other difference is explained."""
    bad = [
        difference for difference in compared.differences if difference.rows or difference.columns
    ]
    text = _of_both(compared, "row counts, keys and old columns are equal in {}")
    return CheckResult("all else equal", not bad, _listed(bad) or text)


def _covered(coverage: Mapping[str, tuple[float, float]]) -> CheckResult:
    low = {
        name: (measured, declared)
        for name, (measured, declared) in coverage.items()
        if measured < declared or measured == 0
    }
    shown = low or coverage
    text = ", ".join(
        f"{name} has a value in {measured:.1%} of rows"
        + (f", declared {declared:.1%}" * (declared > 0))
        for name, (measured, declared) in sorted(shown.items())
    )
    return CheckResult("declared coverage", not low, text or "no new column")


def _explained(compared: CheckedContents) -> CheckResult:
    differences = compared.differences
    bad = list(_unexplained(differences, compared.expected))
    found = f"{counted(len(differences), 'cell')} with a difference, all explained by the change"
    text = _of_both(compared, found + ", of {}")
    return CheckResult(EXPLAINED, not bad, _listed(bad) or text)


def _reconciled(compared: CheckedContents) -> Iterator[CheckResult]:
    """Totals of rows and of metrics, then the trend: cell by cell."""
    old, new, expected = compared.old, compared.new, compared.expected
    time = shared_time(old, new, expected.cells)
    before, after = (
        sum(content.rows for cell, content in side.items() if cell in time) for side in (old, new)
    )
    fits = expected.rows or before == after or (expected.missing and before > after)
    emptied = before > 0 and after == 0  # no meaning of a change explains that
    text = f"{counted(before, 'row')} before, {after:,} after ({_percent(before, after)})"
    if expected.rows and before != after:
        text += ", explained by the change"
    elif fits and before != after:
        text += ", rows that only history had were dropped"
    yield CheckResult("totals reconcile", fits and not emptied, text)
    if compared.totals:
        yield _metrics(compared.totals, expected)
    bad = list(_unexplained(compared.differences, expected))
    text = _of_both(compared, "nothing that the change does not explain differs in {}")
    yield CheckResult("trend reconciles", not bad, _listed(bad) or text)


def _metrics(
    totals: Mapping[str, tuple[Decimal | None, Decimal | None]], expected: Expected
) -> CheckResult:
    """Sums differ only where the change explains it, and no metric loses all its values."""
    moved = {name: sums for name, sums in sorted(totals.items()) if sums[0] != sums[1]}
    # Where rows may be gone, sums prove little; the trend compares the rows that stay, one by one.
    explained = {name for name in moved if expected.missing or expected.explains(name)}
    bad = [name for name in moved if name not in explained or moved[name][1] is None]
    texts = [
        f"{name} {_sum(before)} before, {_sum(after)} after"
        + ", explained by the change" * (name not in bad)
        for name, (before, after) in moved.items()
        if name in bad or not bad
    ]
    equal = f"the sums of {', '.join(sorted(totals))} are equal"
    return CheckResult("metrics reconcile", not bad, "; ".join(texts) or equal)


def _sum(total: Decimal | None) -> str:
    return "no sum" if total is None else f"{total.normalize(EXACT):,f}"


def _unexplained(
    differences: Iterable[CellDifference], expected: Expected
) -> Iterator[CellDifference]:
    for difference in differences:
        if expected.rows or difference.cell in expected.cells:
            continue
        columns = frozenset(name for name in difference.columns if not expected.explains(name))
        rows = difference.rows and not (expected.missing and difference.only_missing)
        if rows or columns:
            yield CellDifference(difference.cell, rows, columns)


def _listed(differences: Iterable[CellDifference]) -> str:
    """List the differences, the most frequent first; empty when there are none."""
    counts: Counter[str] = Counter()
    first: dict[str, Interval] = {}
    for difference in differences:
        for name in [_ROW_SET] if difference.rows else sorted(difference.columns):
            counts[name] += 1
            first.setdefault(name, difference.cell)
    named = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(
        f"{'the rows differ' if name == _ROW_SET else f'{name} differs'} in {counted(count, 'cell')}, "
        f"{_first([first[name]])} first"
        for name, count in named
    )


def _first(cells: Iterable[Interval]) -> str:
    return min(cell.start for cell in cells).isoformat()


def _of_both(compared: CheckedContents, found: str) -> str:
    """Say what was found in the cells that both sides have, or that there are none."""
    count = len(compared.old.keys() & compared.new.keys())
    if count:
        return found.format(counted(count, "cell"))
    return "no cell is cut as before" if compared.old else "no cell was published before"


def _percent(before: int, after: int) -> str:
    return f"{(after - before) / before:+.2%}" if before else "nothing to compare with"
