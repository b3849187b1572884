"""Strategies: how a model's history is changed, with the main risk of each and the signal against it.

The planner proposes one and a person may choose another. Each adds checks on the numbers of the cells,
which run before anything is published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Build, Change
from backfill_assets.planning.plan.request import Category, Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

RISK: Mapping[Strategy, str] = {
    Strategy.FULL_REBUILD: "another history than people know, also where no change was meant",
    Strategy.PARTITION_REPAIR: "a repaired interval that no longer fits its neighbours",
    Strategy.COLUMN_ENRICHMENT: "a rebuild for new columns that quietly changes the old ones",
    Strategy.DUAL_RUN: "two histories side by side, and differences without an explanation",
}
SIGNAL: Mapping[Strategy, str] = {
    Strategy.FULL_REBUILD: (
        "totals of rows and metrics, and the trend, reconcile; what the change doesn't explain is equal"
    ),
    Strategy.PARTITION_REPAIR: "counts fit, and every other cell is equal byte for byte",
    Strategy.COLUMN_ENRICHMENT: (
        "row counts and all other columns are equal; new columns have their declared coverage"
    ),
    Strategy.DUAL_RUN: "every difference between the old and the new history is explained",
}


def propose(
    *,
    build: Build,
    change: Change,
    category: Category | None,
    inputs_changed: bool = False,
    asked: Strategy | None = None,
) -> Strategy | None:
    """Propose how a model's history is changed; None where no published cell changes.

    Args:
        build: where its cells are built.
        change: how it differs from what the environment runs.
        category: what the change means.
        inputs_changed: whether cells would differ without the change as well: an enrichment would
            promise too much.
        asked: a person's choice; it wins where several strategies fit.
    """
    if build in (Build.POINTER, Build.GAP_FILL):
        return None
    if asked is not None:
        return asked
    if build is Build.IN_PLACE:
        return Strategy.PARTITION_REPAIR
    additive = category is Category.NON_BREAKING and change is Change.MODIFIED
    if additive and not inputs_changed:
        return Strategy.COLUMN_ENRICHMENT
    return Strategy.FULL_REBUILD
