"""Find a plan that is to be given up, also one whose content can't be read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.planning.plan.outline import plan_or_outline, why_unreadable

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.state.store import Store


def named_plan(store: Store, name: str) -> Plan:
    """Find a plan; if its content can't be read, give one with its id and environment alone.

    So a plan that an earlier release made can still be given up.

    Raises:
        UnknownPlanError: no plan's id begins so.
        RequestError: several ids begin so.
    """
    stored = store.plans.get(name)
    named = plan_or_outline(stored)
    return replace(named, models=()) if why_unreadable(stored) else named
