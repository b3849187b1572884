"""Write a comparison of two tables as text: which groups differ, in which columns, and the totals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.text import counted
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.models.number import added
from backfill_assets.warehouse.files.cells import cell_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.compared import Group, Measure
    from backfill_assets.warehouse.compare.compare import Comparison, Difference

_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Total:
    """One column over all that was compared.

    Attributes:
        column: its name.
        changed: in how many rows of both tables its value differs.
        old_filled: in how many old rows it is not NULL.
        new_filled: in how many new rows it is not NULL.
        old_sum: of the old values; None unless it is numeric there, and all values have one.
        new_sum: of the new ones.
        note: ``new column``, ``column removed``, the old type of one that has another now, or nothing.
    """

    column: str
    changed: int
    old_filled: int
    new_filled: int
    old_sum: Decimal | None
    new_sum: Decimal | None
    note: str = ""

    @property
    def differs(self) -> bool:
        """Whether anything about the column is different."""
        same = (self.old_filled, self.old_sum) == (self.new_filled, self.new_sum)
        return bool(self.changed or self.note) or not same


def differs(comparison: Comparison) -> bool:
    """Whether the two tables differ at all."""
    return bool(comparison.added or comparison.removed or comparison.retyped) or any(
        group.differs for group in comparison.groups
    )


def group_row(model: Model, by: tuple[str, ...], group: Group) -> tuple[str, ...]:
    """Write one group as a line of a table: its names, rows before and after, what differs."""
    names = (_named(model, column, value) for column, value in zip(by, group.by, strict=True))
    numbers = (
        group.old_rows, group.new_rows, group.keys_added, group.keys_removed, group.rows_changed
    )  # fmt: skip
    return (*names, *(f"{number:,}" for number in numbers), _changed(group.columns))


def _named(model: Model, column: str, value: str | None) -> str:
    if value is None or column != CELL_COLUMN:
        return _part(_text(value), 0)
    return model.cadence.key(cell_of_text(model.cadence, value))


def _changed(columns: Mapping[str, Measure]) -> str:
    listed = [(name, measure.changed) for name, measure in columns.items() if measure.changed]
    listed.sort(key=lambda counts: -counts[1])
    shown = ", ".join(f"{name} {count:,}" for name, count in listed[:_COLUMNS])
    return shown + (f", and {len(listed) - _COLUMNS} more" if len(listed) > _COLUMNS else "")


def totals(comparison: Comparison) -> tuple[Total, ...]:
    """Sum up every column over all groups."""
    names = dict.fromkeys(name for group in comparison.groups for name in group.columns)
    return tuple(_total(name, comparison) for name in names)


def _total(name: str, comparison: Comparison) -> Total:
    parts = [group.columns[name] for group in comparison.groups if name in group.columns]
    note = "new column" if name in comparison.added else _types(comparison).get(name, "")
    return Total(
        name,
        changed=sum(part.changed for part in parts),
        old_filled=sum(part.old_filled for part in parts),
        new_filled=sum(part.new_filled for part in parts),
        old_sum=added(part.old_sum for part in parts),
        new_sum=added(part.new_sum for part in parts),
        note="column removed" if name in comparison.removed else note,
    )


def null_rates(comparison: Comparison) -> tuple[str, ...]:
    """Say of each column of both tables in which part of the rows it is NULL, where that part has changed."""
    before = sum(group.old_rows for group in comparison.groups)
    after = sum(group.new_rows for group in comparison.groups)
    if not before or not after:
        return ()
    rates = (
        (
            total.column,
            1 - Fraction(total.old_filled, before),
            1 - Fraction(total.new_filled, after),
        )
        for total in totals(comparison)
        if total.column not in {*comparison.added, *comparison.removed}
    )
    return tuple(
        f"NULL in {column}: {float(old):.2%} of rows before, {float(new):.2%} after"
        for column, old, new in rates
        if old != new
    )


def retyped_texts(comparison: Comparison) -> tuple[str, ...]:
    """Say of each column of another type that has no total, as those of the key, which types it had and has."""
    with_total = {total.column for total in totals(comparison)}
    return tuple(
        f"{column}: {types}"
        for column, types in _types(comparison).items()
        if column not in with_total
    )


def _types(comparison: Comparison) -> dict[str, str]:
    """Say of each column of another type which it had and has."""
    return {column: f"{before} -> {after}" for column, before, after in comparison.retyped}


def total_row(total: Total) -> tuple[str, ...]:
    """Write a column's total as a line of a table."""
    return (
        total.column,
        f"{total.changed:,}",
        f"{total.old_filled:,}",
        f"{total.new_filled:,}",
        _number(total.old_sum),
        _number(total.new_sum),
        ", ".join(filter(None, (_share(total.old_sum, total.new_sum), total.note))),
    )


def _number(value: Decimal | None) -> str:
    return "" if value is None else f"{value:,f}"


def _share(old: Decimal | None, new: Decimal | None) -> str:
    if old is None or new is None or old == new:
        return ""
    return f"{(new - old) / abs(old):+.2%}" if old else "from 0"


def difference_text(difference: Difference) -> str:
    """Write one row that differs, on one line."""
    key = _values(difference.key)
    if difference.change != "changed":
        values = difference.new if difference.change == "added" else difference.old
        return f"{difference.change} {key}: {_values(values)}"
    pairs = (
        f"{name} {' -> '.join(_beside(old, difference.new.get(name)))}"
        for name, old in difference.old.items()
    )
    return f"changed {key}: {', '.join(pairs)}"


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_part(_text(value), 0)}" for name, value in values.items())


def _beside(old: object, new: object) -> tuple[str, str]:
    """Write two values that differ; of long ones the part from shortly before the first difference on."""
    before, after = _text(old), _text(new)
    pairs = enumerate(zip(before, after, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = alike - _ALIKE if max(len(before), len(after)) > _LONGEST and alike > _ALIKE else 0
    return _part(before, start), _part(after, start)


def _part(text: str, start: int) -> str:
    """Write a text from a place on, cut where it is long."""
    if not start and len(text) <= _LONGEST:
        return text
    head, tail = "..." if start else "", "..." if start + _LONGEST < len(text) else ""
    return f"{head}{text[start : start + _LONGEST]}{tail} ({len(text):,} characters)"


def _text(value: object) -> str:
    """Write a value so that NULL, a text without visible characters and one of several lines are told apart."""
    match value:
        case None:
            return "NULL"
        case str() if value.isprintable() and value == value.strip() and value not in {"", "NULL"}:
            return value
        case str() | dict() | list():
            written = json.dumps(value, ensure_ascii=False, default=str)
            return written if written.isprintable() else json.dumps(value, default=str)
        case _:
            return str(value)


_LONGEST = 80
_ALIKE = 10
"""So many characters of two long values are shown before the first that differs."""


def counts_text(comparison: Comparison) -> str:
    """Say in one line how much differs."""
    groups = comparison.groups
    new = f", {counted(len(comparison.added), 'new column')}" if comparison.added else ""
    gone = f", {counted(len(comparison.removed), 'column')} removed" if comparison.removed else ""
    retyped = counted(len(comparison.retyped), "column")
    other = f", {retyped} of another type" if comparison.retyped else ""
    return (
        f"{counted(sum(group.old_rows for group in groups), 'row')} before, "
        f"{sum(group.new_rows for group in groups):,} after; "
        f"{counted(sum(group.keys_added for group in groups), 'key')} added, "
        f"{sum(group.keys_removed for group in groups):,} removed, "
        f"{counted(sum(group.rows_changed for group in groups), 'row')} changed{new}{gone}{other}"
    )


def profile_rows(model: Model, comparison: Comparison, *, whole: bool) -> list[tuple[str, ...]]:
    """Write the distinct values and percentiles of columns, group by group, as lines of a table.

    Args:
        model: whose rows were compared.
        comparison: what was found; without a profile there are no lines.
        whole: every group and column; else only the differing columns of the first differing groups.
    """
    rows: list[tuple[str, ...]] = []
    for group in comparison.groups:
        named = zip(comparison.by, group.by, strict=True)
        name = ", ".join(_named(model, column, value) for column, value in named)
        for column, measure in group.columns.items():
            if measure.old_distinct is None and measure.new_distinct is None:
                continue
            before = (measure.old_distinct, measure.old_percentiles)
            if whole or before != (measure.new_distinct, measure.new_percentiles):
                rows.append((name, column, *_profile_cells(measure)))
    return rows if whole else rows[:_PROFILED]


_PROFILED = 20


def _profile_cells(measure: Measure) -> Iterator[str]:
    for distinct in (measure.old_distinct, measure.new_distinct):
        yield "" if distinct is None else f"{distinct:,}"
    for at in range(3):
        for percentiles in (measure.old_percentiles, measure.new_percentiles):
            yield "" if percentiles is None else f"{percentiles[at]:,.6g}"
