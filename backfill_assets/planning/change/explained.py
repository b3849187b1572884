"""Derive how the edits of a plan may change the content of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.change.categorize import affected, both, difference
from backfill_assets.planning.change.deriving import derived
from backfill_assets.planning.plan.plan import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.change.categorize import Difference
    from backfill_assets.planning.plan.plan import Plan


def explained(
    plan: Plan, before: Graph, after: Graph, reads: Mapping[str, Mapping[str, frozenset[str]]]
) -> dict[str, Difference]:
    """Follow the edits of a plan from model to model; a model that is absent may not differ for them.

    Args:
        plan: the plan.
        before: what its environment runs.
        after: what its workspace runs.
        reads: per model, what it reads by column (lineage); absent means all.
    """
    found: dict[str, Difference] = {}
    for name in after.order:
        planned = plan.model(name)
        if planned is None or name not in before.models:
            continue
        model = after.models[name]
        changed = {
            up.name: found[up.name]
            for up in model.reads
            if up.name in found
            and up.name != name
            and affected(found[up.name], reads.get(name, {}).get(up.name))
        }
        if planned.change is Change.MODIFIED:
            found[name] = difference(before.models[name], model)
        if changed:
            follows = derived(model, changed)
            found[name] = both(found[name], follows) if name in found else follows
    return found
