"""`backfill resume`: continue a plan that was paused or stopped."""

from __future__ import annotations

from backfill_assets.cli.controlling import controlled
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.snapshots.queued_plan import Control


def resume(
    plan: PlanId,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Continue a plan that was paused or stopped, with exactly its remaining work.

    A paused plan in the queue continues automatically. A stopped plan has left the queue: `backfill apply`, also with `--queue`, continues
    it.

    Exit code: 0 when the plan continues, 1 when it was neither paused nor stopped, or has ended.

    Example: backfill resume p1a2b3c4d5
    """
    changed = controlled(plan, Control.RUNNING, reason)
    name = changed.plan.plan_id
    queued = changed.plan.queued_at is not None
    changed.tell("goes on", then=f"{'show' if queued else 'apply'} {name}", as_json=as_json)
