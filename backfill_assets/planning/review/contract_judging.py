"""Judge a contract over a comparison: what is published, and what a plan has built, cell by cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, assert_never

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.models.number import EXACT, added
from backfill_assets.planning.change.strategy_checks import CheckResult
from backfill_assets.planning.review.contract import (
    PLANNER,
    NullsWithin,
    OnlyCells,
    OnlyColumns,
    Per,
    RowChange,
    RowsWithin,
    SumWithin,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.planning.change.compared import Group, Measure
    from backfill_assets.planning.review.contract import Expectation, Rule


@dataclass(frozen=True, slots=True)
class CellFound:
    """What was found in one cell that was published before.

    Attributes:
        cell: the interval.
        name: its key.
        month: the month in which it begins, such as ``2024-03``.
        rows: what the comparison has counted in it.
    """

    cell: Interval
    name: str
    month: str
    rows: Group


@dataclass(frozen=True, slots=True)
class Found:
    """What a comparison of one model has found.

    Attributes:
        cells: those that were compared; all others that were published before are equal.
        old_rows: rows before, of every cell that was published.
        added: columns that only the new table has.
        removed: columns that only the old one has.
        retyped: columns of another type, with the old type and the new one.
        appended: cells that were published since the plan was made, and computed with its logic.
        explained: cells that differ for another reason, such as late rows: no proof of the planner's
            is about them.
        groups: by the column whose values they are, the columns of each group, over all cells.
        afterwards: by column, the rows of every cell that there is afterwards, and how many of them are not
            NULL there.
    """

    cells: Sequence[CellFound]
    old_rows: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[tuple[str, str, str], ...] = ()
    appended: IntervalSet = field(default_factory=IntervalSet.empty)
    explained: IntervalSet = field(default_factory=IntervalSet.empty)
    groups: Mapping[str, Mapping[str, Mapping[str, Measure]]] = field(
        default_factory=dict[str, "Mapping[str, Mapping[str, Measure]]"]
    )
    afterwards: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])


def judge(expected: Expectation, found: Found) -> CheckResult:
    """Hold one rule against what was found."""
    judged = found.cells
    if expected.decided_by == PLANNER:
        judged = [cell for cell in judged if cell.cell not in found.explained]
    bad, text = _judged(expected.rule, judged, found)
    return CheckResult(expected.check, not bad, text + _left_out(found.cells, judged))


def _left_out(cells: Sequence[CellFound], judged: Sequence[CellFound]) -> str:
    """Say how many cells that differ were not judged."""
    count = sum(cell.rows.differs for cell in cells) - sum(cell.rows.differs for cell in judged)
    return f", besides {counted(count, 'cell')} with corrected input" if count else ""


def _judged(rule: Rule, cells: Sequence[CellFound], differences: Found) -> tuple[bool, str]:
    match rule:
        case OnlyColumns(columns):
            return _columns(frozenset(columns), cells, differences)
        case RowsWithin(rows, percent):
            return _rows(rows, percent, cells, differences.old_rows)
        case SumWithin():
            return _sums(rule, cells, differences)
        case OnlyCells(allowed):
            return _cells(allowed | differences.appended, cells)
        case NullsWithin(column, percent):
            return _nulls(percent, *differences.afterwards.get(column, (0, 0)))
        case _:
            assert_never(rule)


def _columns(
    allowed: frozenset[str], cells: Sequence[CellFound], differences: Found
) -> tuple[bool, str]:
    changed: Counter[str] = Counter()
    for cell in cells:
        changed.update({name: column.changed for name, column in cell.rows.columns.items()})
    listed = sorted(
        (item for item in changed.items() if item[1]), key=lambda item: (-item[1], item[0])
    )
    others = [
        *(f"{counted(rows, 'row')} of {name}" for name, rows in listed if name not in allowed),
        *(f"the new column {name}" for name in differences.added if name not in allowed),
        *(f"{name} gone" for name in differences.removed if name not in allowed),
        *(
            f"{name} as {after} instead of {before}"
            for name, before, after in differences.retyped
            if name not in allowed
        ),
    ]
    if others:
        return True, f"found {', '.join(others)}"
    expected = [f"{counted(rows, 'row')} of {name}" for name, rows in listed]
    return False, f"found {', '.join(expected)}" if expected else "found no value that differs"


def _rows(
    rows: RowChange, percent: float, cells: Sequence[CellFound], old_rows: int
) -> tuple[bool, str]:
    count = sum(_count(cell.rows, rows) for cell in cells)
    bad = Decimal(count) * 100 > _exact(percent) * old_rows
    share = f", {Decimal(count) / old_rows:.2%}" if old_rows and count else ""
    return bad, f"found {count:,} of {counted(old_rows, 'row')}{share}"


def _count(group: Group, rows: RowChange) -> int:
    match rows:
        case RowChange.CHANGED:
            return group.rows_changed
        case RowChange.ADDED:
            return group.keys_added
        case RowChange.REMOVED:
            return group.keys_removed
        case _:
            assert_never(rows)


def _sums(rule: SumWithin, cells: Sequence[CellFound], differences: Found) -> tuple[bool, str]:
    groups: dict[str, list[Measure]] = defaultdict(list)
    for name, columns in _parts(rule, cells, differences):
        if rule.sum_of in columns:
            groups[name].append(columns[rule.sum_of])
    compared = [
        (name, _total(parts, new=False), _total(parts, new=True)) for name, parts in groups.items()
    ]
    own = dict(rule.own)
    bad = [group for group in compared if not _near(*group[1:], own.get(group[0], rule.percent))]
    if not compared:
        return False, "found nothing to compare with"
    name, before, after = max(bad or compared, key=lambda group: _distance(group[1], group[2]))
    where = f" in {name}" if name else ""
    text = (
        f"found {_change(before, after)}{where}: {_number(before)} before, {_number(after)} after"
    )
    if len(bad) > 1:
        text += f"; and {counted(len(bad) - 1, f'other {rule.each}')}"
    return bool(bad), text if bad or rule.per is Per.WHOLE else text.replace("found", "at most", 1)


def _parts(
    rule: SumWithin, cells: Sequence[CellFound], differences: Found
) -> Iterator[tuple[str, Mapping[str, Measure]]]:
    """Give what is summed, with the name of the stretch or group that it belongs to."""
    match rule.per:
        case Per.WHOLE:
            yield from (("", cell.rows.columns) for cell in cells)
        case Per.MONTH:
            yield from ((cell.month, cell.rows.columns) for cell in cells)
        case Per.CELL:
            yield from ((cell.name, cell.rows.columns) for cell in cells)
        case Per.GROUP:
            yield from differences.groups.get(rule.group, {}).items()
        case _:
            assert_never(rule.per)


def _total(parts: Iterable[Measure], *, new: bool) -> Decimal | None:
    return added(part.new_sum if new else part.old_sum for part in parts)


def _near(before: Decimal | None, after: Decimal | None, percent: float) -> bool:
    if before is None or after is None:
        return False
    return abs(after - before) * 100 <= _exact(percent) * abs(before)


def _distance(before: Decimal | None, after: Decimal | None) -> Decimal:
    if before is None or after is None or (not before and after):
        return Decimal("Infinity")
    return abs((after - before) / before) if before else Decimal(0)


def _change(before: Decimal | None, after: Decimal | None) -> str:
    if before is None or after is None:
        return "no sum"
    if before == after:
        return "no difference"
    return f"{(after - before) / abs(before):+.2%}" if before else "a sum where none was"


def _number(value: Decimal | None) -> str:
    return "none" if value is None else f"{value.normalize(EXACT):,f}"


def _cells(allowed: IntervalSet, cells: Sequence[CellFound]) -> tuple[bool, str]:
    differing = [cell for cell in cells if cell.rows.differs]
    others = [cell for cell in differing if cell.cell not in allowed]
    if others:
        first = min(others, key=lambda cell: cell.cell.start)
        return True, f"found {counted(len(others), 'other cell')}, {first.name} first"
    return (
        False,
        f"found {counted(len(differing), 'cell')} that differ{'s' * (len(differing) == 1)}",
    )


def _nulls(percent: float, rows: int, filled: int) -> tuple[bool, str]:
    nulls = rows - filled
    bad = Decimal(nulls) * 100 > _exact(percent) * rows
    share = f", {Decimal(nulls) / rows:.2%}" if rows and nulls else ""
    return bad, f"found {nulls:,} of {counted(rows, 'row')}{share}"


def _exact(percent: float) -> Decimal:
    return Decimal(repr(percent))
