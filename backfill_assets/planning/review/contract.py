"""The contract of a plan: what it is expected to change, model by model, as rules that are judged.

A rule is the author's, or the planner's where it can be proved before anything is built. Both are held
against the comparison of what is published with what the plan has built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from backfill_assets.planning.plan.json_forms import Cells

PLANNER = "planner"


class RowChange(StrEnum):
    """How rows may differ: by key."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


class Per(StrEnum):
    """Over which stretches a sum is compared."""

    WHOLE = "whole"
    MONTH = "month"
    CELL = "cell"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class OnlyColumns:
    """Of rows that stay, no other column differs, is new or is gone.

    Attributes:
        columns: those that may; none for no column at all.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowsWithin:
    """At most so many rows differ in one way.

    Attributes:
        rows: in which way.
        percent: at most, of the rows that were published before.
    """

    rows: RowChange
    percent: float


@dataclass(frozen=True, slots=True)
class SumWithin:
    """The sum of a column stays about what it was.

    Attributes:
        sum_of: the column.
        percent: by how much it may differ at most, of the sum before.
        per: over which stretches, or in which groups.
        group: of groups, the column whose values they are.
        own: (stretch or group, percent) of those that may differ by more, or by less.
    """

    sum_of: str
    percent: float
    per: Per
    group: str = ""
    own: tuple[tuple[str, float], ...] = ()

    @property
    def each(self) -> str:
        """What is summed apart, in a word: a stretch, or the column of the groups."""
        return self.group or self.per.value


@dataclass(frozen=True, slots=True)
class OnlyCells:
    """No other cell differs; cells that are appended while the plan waits are none of them.

    Attributes:
        cells: those that may.
    """

    cells: Cells


@dataclass(frozen=True, slots=True)
class NullsWithin:
    """A column is NULL in few rows.

    Attributes:
        nulls_of: the column.
        percent: at most, of the rows afterwards.
    """

    nulls_of: str
    percent: float


Rule = OnlyColumns | RowsWithin | SumWithin | OnlyCells | NullsWithin


@dataclass(frozen=True, slots=True)
class Expectation:
    """One rule of the contract.

    Attributes:
        model: of which model it is.
        check: its name in words, by which its result is shown and accepted.
        rule: what is expected.
        decided_by: ``planner``, or the person who wrote it.
    """

    model: str
    check: str
    rule: Rule
    decided_by: str = PLANNER


def rule_words(  # noqa: C901, PLR0911 - one case for each form
    rule: Rule, cells: str
) -> str:
    """Say what is expected.

    Args:
        rule: the rule.
        cells: the names of the cells of a rule on cells.
    """
    match rule:
        case OnlyColumns(()):
            return "no column differs"
        case OnlyColumns(columns):
            return f"only {', '.join(columns)} differ{'s' if len(columns) == 1 else ''}"
        case RowsWithin(rows, 0):
            return f"no row is {rows.value}"
        case RowsWithin(rows, percent):
            return f"at most {percent_text(percent)} of rows {rows.value}"
        case SumWithin(column, percent, per):
            where = "" if per is Per.WHOLE else f" a {rule.each}"
            where += "".join(f", {percent_text(own)} in {name}" for name, own in rule.own)
            if not percent:
                return f"sum of {column} equal{where}"
            return f"sum of {column} within {percent_text(percent)}{where}"
        case OnlyCells():
            return f"only cells {cells} differ"
        case NullsWithin(column, 0):
            return f"{column} is never NULL"
        case NullsWithin(column, percent):
            return f"{column} NULL in at most {percent_text(percent)} of rows"
        case _:
            assert_never(rule)


def percent_text(percent: float) -> str:
    """Write a percentage as people write it: ``2%``, ``0.5%``."""
    return f"{percent:.10f}".rstrip("0").rstrip(".") + "%"


def subject(rule: Rule) -> tuple[str, ...]:
    """Name what a rule is about: of two with one subject the author's counts."""
    match rule:
        case OnlyColumns():
            return ("columns",)
        case RowsWithin(rows):
            return ("rows", rows.value)
        case SumWithin(column, _, per):
            return ("sum", column, per.value, rule.group)
        case OnlyCells():
            return ("cells",)
        case NullsWithin(column):
            return ("nulls", column)
        case _:
            assert_never(rule)


def needs_every_cell(rule: Rule) -> bool:
    """Whether a rule is judged over equal cells, too."""
    return isinstance(rule, SumWithin)
