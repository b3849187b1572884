"""Which plans a rollback to an earlier state takes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.state.store import Store


def promoted_after(store: Store, last: Plan) -> tuple[Plan, ...]:
    """Find the plans of an environment that were promoted after one and are not taken back, the latest first.

    Raises:
        RequestError: there is none, or the plan itself was never promoted.
    """
    own = [move.number for move in store.history.promoting_moves(last.plan_id)]
    after = store.history.moves_in(last.environment, max(own, default=0))
    ids = dict.fromkeys(move.plan_id for move in reversed(after))
    kept = [store.plans.get(plan_id) for plan_id in ids if plan_id != last.plan_id]
    plans = [read_plan(plan.content) for plan in kept if plan.status is PlanStatus.PROMOTED]
    if not own or not plans:
        raise RequestError(
            found=f"nothing was promoted in {last.environment} after plan {last.plan_id}: "
            "there is nothing to roll back",
            do=f"`backfill rollback {last.plan_id}` takes that plan itself back",
        )
    return tuple(plans)
