"""Hold a plan's contract against what it has built: only what differs is compared row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.plans.comparing import (
    compared_once,
    published_and_built,
    totals_once,
)
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.contract import NullsWithin, Per, SumWithin, needs_every_cell
from backfill_assets.planning.review.contract_judging import CellFound, Found, judge
from backfill_assets.warehouse.compare.comparison_sql import Question, sides_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.content import Content
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.compared import Measure
    from backfill_assets.planning.change.strategy_checks import Cells, CheckResult
    from backfill_assets.planning.review.contract import Expectation
    from backfill_assets.warehouse.compare.comparison_sql import Compared


def contract_results(  # noqa: PLR0913 - all that a comparison rests on
    op: Operation,
    model: Model,
    expected: Sequence[Expectation],
    runs: tuple[RunContext, RunContext],
    contents: tuple[Cells, Cells],
    *,
    appended: IntervalSet,
    explained: IntervalSet,
) -> tuple[CheckResult, ...]:
    """Judge what is expected of one model.

    Args:
        op: the plan, and who works on it.
        model: as the plan's workspace declares it.
        expected: its rules.
        runs: the environment, and the plan's workspace.
        contents: what each cell holds that is published now, and what it would hold.
        appended: cells that were published since the plan was made.
        explained: cells that differ for another reason than the plan's edits.
    """
    old, new = contents
    every = any(needs_every_cell(each.rule) for each in expected)
    differing = IntervalSet.of(
        cell for cell, content in old.items() if every or _differs(content, new.get(cell))
    )
    cells = model.cadence.snap_out(differing)
    differences = Found(
        (),
        0,
        appended=appended,
        explained=explained,
        afterwards=_afterwards(op, model, expected, runs[1], IntervalSet.of(new)),
    )
    if old:
        both = published_and_built(model, runs)
        sides = sides_of(both, None)
        differences = replace(
            differences,
            cells=_compared(op, both, cells) if cells else (),
            old_rows=sum(content.rows for content in old.values()),
            added=sides.added,
            removed=sides.removed,
            retyped=sides.retyped,
            groups={name: _grouped(op, both, cells, name) for name in _groups(expected)},
        )
    return tuple(judge(each, differences) for each in expected)


def _afterwards(
    op: Operation,
    model: Model,
    expected: Sequence[Expectation],
    run: RunContext,
    cells: IntervalSet,
) -> dict[str, tuple[int, int]]:
    """Count the values of each column that may be NULL in few rows; in new cells, too."""
    rules = (each.rule for each in expected)
    names = {rule.nulls_of for rule in rules if isinstance(rule, NullsWithin)} if cells else set()
    if not names:
        return {}
    counted = totals_once(op, model, published_table(run, model.name), tuple(sorted(names)), cells)
    return {name: (counted.rows, counted.filled[name]) for name in names}


def _groups(expected: Sequence[Expectation]) -> dict[str, None]:
    """Name the columns in whose groups sums are compared."""
    rules = (each.rule for each in expected)
    return dict.fromkeys(
        rule.group for rule in rules if isinstance(rule, SumWithin) and rule.per is Per.GROUP
    )


def _grouped(
    op: Operation, both: Compared, cells: IntervalSet, column: str
) -> dict[str, Mapping[str, Measure]]:
    """Compare the groups of one column over all cells."""
    groups = compared_once(op, both, Question(by=(column,), cells=cells)).groups
    return {_group_name(each.by[0]): each.columns for each in groups}


def _group_name(value: str | None) -> str:
    """Name a group by its value; the text NULL is another one than none."""
    return "NULL" if value is None else "'NULL'" if value == "NULL" else value


def _differs(old: Content, new: Content | None) -> bool:
    """Whether the rows of a cell may; columns of one side only are seen in the schemas."""
    if new is None or (old.rows, old.key) != (new.rows, new.key):
        return True
    common = old.columns.keys() & new.columns.keys()
    return any(old.columns[name] != new.columns[name] for name in common)


def _compared(op: Operation, both: Compared, cells: IntervalSet) -> tuple[CellFound, ...]:
    groups = compared_once(op, both, Question(cells=cells)).cells(both.model)
    cadence = both.model.cadence
    zone = ZoneInfo(cadence.tz)
    return tuple(
        CellFound(cell, cadence.key(cell), f"{cell.start.astimezone(zone):%Y-%m}", group)
        for cell, group in sorted(groups.items(), key=lambda item: item[0].start)
    )
