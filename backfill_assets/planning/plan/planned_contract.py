"""The contract of a plan: what its author expects, and what the planner can prove beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Build, Change
from backfill_assets.planning.plan.request import KeptRows, Strategy
from backfill_assets.planning.review.contract import (
    PLANNER,
    OnlyCells,
    OnlyColumns,
    RowChange,
    RowsWithin,
    subject,
)
from backfill_assets.planning.review.contract_text import expectation, expectations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.categorize import DeclarationDifference
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.planning.review.contract import Expectation, Rule


def planned_contract(
    plan: Plan,
    before: Mapping[str, Model],
    after: Mapping[str, Model],
    edits: Mapping[str, DeclarationDifference],
) -> tuple[Expectation, ...]:
    """Put together what is expected of each model; of two rules on one thing the author's counts.

    Args:
        plan: the plan, without a contract yet.
        before: what its environment runs.
        after: what it will run.
        edits: how models may differ by the plan's edits alone; without those whose inputs changed.

    Raises:
        RequestError: a rule can't be read, or names no model, column or cell.
    """
    contract: list[Expectation] = []
    for name in after:
        own = written_contract(plan, before.get(name), after[name])
        planned = plan.model(name)
        if planned is None:
            continue
        subjects = {subject(expected.rule) for expected in own}
        proved = () if plan.request.empty else _proved(planned, before, after, edits)
        contract += own
        contract += [
            expectation(after[name], rule, PLANNER)
            for rule in proved
            if subject(rule) not in subjects
        ]
    return tuple(contract)


def written_contract(plan: Plan, old: Model | None, model: Model) -> tuple[Expectation, ...]:
    """Read what the author expects of one model.

    Raises:
        RequestError: a rule can't be read, or names no column or cell.
    """
    texts = [text for name, text in plan.request.expect if name == model.name]
    return expectations(model, old, texts, plan.request.asked_by or "author")


def _proved(
    planned: ModelPlan,
    before: Mapping[str, Model],
    after: Mapping[str, Model],
    edits: Mapping[str, DeclarationDifference],
) -> Iterator[Rule]:
    """Give what must hold if the planner is right: no comparison is needed to say so."""
    name = planned.model
    if name not in before:
        return
    if planned.build is Build.POINTER:
        yield OnlyColumns(())
        yield from _no_rows()
    elif planned.strategy is Strategy.PARTITION_REPAIR:
        yield OnlyCells(planned.cells)
    elif planned.strategy is Strategy.COLUMN_ENRICHMENT:
        old_names = {column.name for column in before[name].schema}
        yield OnlyColumns(tuple(c.name for c in after[name].schema if c.name not in old_names))
        yield from _no_rows()
    elif planned.change is Change.MODIFIED and planned.strategy and name in edits:
        edit = edits[name]
        if edit.columns is not None and not edit.rows and planned.kept_rows is not KeptRows.DROP:
            yield OnlyColumns(tuple(sorted(edit.columns)))
            yield from _no_rows()


def _no_rows() -> Iterator[Rule]:
    return (RowsWithin(change, 0.0) for change in (RowChange.ADDED, RowChange.REMOVED))
