"""Find a plan that is to be given up, also one whose content can't be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Plan
from backfill_assets.planning.plan.plan_json import PlanFormatError, read_plan
from backfill_assets.planning.plan.request import PlanRequest

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


def named_plan(store: Store, name: str) -> Plan:
    """Find a plan; if its content can't be read, give one with its id and environment alone.

    So a plan that an earlier release made can still be given up.

    Raises:
        UnknownPlanError: no plan's id begins so.
        RequestError: several ids begin so.
    """
    stored = store.plans.get(name)
    try:
        return read_plan(stored.content)
    except PlanFormatError:
        return Plan(
            plan_id=stored.plan_id,
            request=PlanRequest(environment=stored.environment),
            environment=stored.environment,
            protected=True,
            created_at=stored.created_at,
            expires_at=stored.expires_at,
            until=stored.created_at,
            seen=0,
            models=(),
        )
