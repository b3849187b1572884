"""The models of a plan as its environment runs them afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.state.store import Store


def planned_models(store: Store, plan: Plan) -> dict[str, Model]:
    """Read the models of a plan, by name; one whose snapshot is not kept is left out.

    They may be declared otherwise: by an edit that is not promoted, or that came after the plan.
    """
    found = {each.model: store.snapshots.model(each.fingerprint) for each in plan.models}
    return {name: model for name, model in found.items() if model is not None}
