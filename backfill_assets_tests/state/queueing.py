"""Plans that tests of the queue keep in the state."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan
from backfill_assets_tests.state.building import NOON

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


def keep_plan(store: Store, plan_id: str, status: PlanStatus = PlanStatus.APPLYING) -> None:
    """Keep a plan that stands there."""
    store.plans.save_plan(
        StoredPlan(
            plan_id=plan_id,
            environment="prod",
            status=status,
            content="{}",
            content_hash=f"of {plan_id}",
            created_at=NOON,
            created_by="grace",
            reason="late rows",
            expires_at=NOON + timedelta(days=7),
        )
    )
