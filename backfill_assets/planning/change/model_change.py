"""The change of each model of a planned graph, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.change.categorize import DeclarationDifference
from backfill_assets.planning.plan.plan import Untouched

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Change
    from backfill_assets.planning.plan.request import Category


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """The change of one model.

    Attributes:
        change: how it differs from what the environment runs.
        category: of the change; None for an unchanged or added model.
        reason: why that category.
        decided_by: ``planner`` or who asked.
        new_version: whether it gets a table of its own.
        fingerprint: of the snapshot that the environment runs afterwards.
        version: of the table that it reads afterwards.
        restates: whether its history is computed anew in the table that it keeps, from the
            effective date or the cutoff on.
        lost: published cells that its new life leaves out: its new table has none of them.
        notes: what a reader should know.
    """

    change: Change
    category: Category | None = None
    reason: str = ""
    decided_by: str = "planner"
    new_version: bool = False
    fingerprint: str
    version: str
    restates: bool = False
    lost: IntervalSet = field(default_factory=IntervalSet.empty)
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Changes:
    """Every model of the graph, and the readers that are left alone."""

    models: dict[str, ModelChange] = field(default_factory=dict[str, ModelChange])
    untouched: list[Untouched] = field(default_factory=list[Untouched])
    effects: dict[str, DeclarationDifference] = field(
        default_factory=dict[str, DeclarationDifference]
    )
