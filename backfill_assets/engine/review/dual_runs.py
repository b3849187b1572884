"""Dual runs of plans: which are under way, what a comparison tells, and when one may be promoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.planning.plan.outline import plan_or_outline
from backfill_assets.planning.review.dual_run import dual_run_of
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.review.dual_run import DualRun
    from backfill_assets.state.store import Store


def dual_run(store: Store, plan: Plan) -> DualRun | None:
    """Read the dual run of a plan; None where it has none, or is not built yet."""
    days = plan.request.dual_run_days
    return dual_run_of(days, store.plans.events(plan.plan_id)) if days else None


def dual_runs(store: Store) -> dict[str, DualRun]:
    """Read every dual run that is under way, by plan; that of a plan which can't be read is not known."""
    built = map(plan_or_outline, store.plans.latest(statuses=(PlanStatus.BUILT,)))
    by_plan = {plan.plan_id: dual_run(store, plan) for plan in built}
    return {plan_id: dual for plan_id, dual in by_plan.items() if dual}


def refuse_early(store: Store, plan: Plan, at: datetime) -> None:
    """Refuse to promote a plan at an instant (UTC) at which both histories are still to be filled.

    Raises:
        RequestError: its dual run is not over by then.
    """
    dual = dual_run(store, plan)
    if dual is not None and dual.lasts(at):
        raise RequestError(
            found=f"plan {plan.plan_id} is a dual run until "
            f"{minute_text(dual.until)}, nothing was published: until then "
            f"{plan.environment}'s own cells are authoritative",
            do=f"`backfill apply {plan.plan_id}` compares both now; promote it then",
        )
