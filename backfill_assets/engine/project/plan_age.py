"""How long a plan that is applied may wait: as long after its last step as it could be applied at all.

While it waits, late data leaves its cells alone. So that no plan stops late data for ever, one that
waits for too long holds nothing any more, and can't be promoted: what it built is older by then than
what is published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.plan.outline import plan_or_outline
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store


def waits_until(store: Store, plan: Plan | StoredPlan) -> datetime:
    """Give the instant (UTC) from which on an applied plan holds nothing and can't be promoted."""
    span = plan.expires_at - plan.created_at
    until = plan.created_at + span
    for instant in store.plans.steps(plan.plan_id):
        if instant > until:
            break  # it had waited for too long by then: nothing revives it
        until = max(until, instant + span)
    return until


def stands(store: Store, plan: Plan | StoredPlan, now: datetime) -> bool:
    """Whether an applied plan has not waited for too long."""
    return now < waits_until(store, plan)


def may_go_on(store: Store, plan: StoredPlan, now: datetime) -> bool:
    """Whether a plan may still be applied or promoted; a proposal expires, whatever was said of it meanwhile."""
    if plan.status in OPEN:
        return stands(store, plan, now)
    return plan.status is PlanStatus.PROPOSED and not plan.has_expired(now)


def standing_rows(store: Store, now: datetime) -> list[StoredPlan]:
    """Read the open plans that have not waited for too long, as they are stored."""
    return [row for row in store.plans.latest(statuses=OPEN) if stands(store, row, now)]


def open_plans(store: Store) -> tuple[Plan, ...]:
    """Read the plans that are applied and neither promoted nor abandoned, of every environment.

    The outline stands for one that can't be read.
    """
    return tuple(map(plan_or_outline, store.plans.latest(statuses=OPEN)))


def standing_plans(store: Store, now: datetime) -> tuple[Plan, ...]:
    """Read the open plans that have not waited for too long; the outline stands for one that can't be read."""
    return tuple(map(plan_or_outline, standing_rows(store, now)))
