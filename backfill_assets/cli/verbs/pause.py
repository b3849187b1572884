"""`backfill pause`: open no further batch of a plan."""

from __future__ import annotations

from backfill_assets.cli.controlling import controlled
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.snapshots.queued_plan import Control


def pause(
    plan: PlanId,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Pause a plan: no further batch starts until it is resumed; running batches end normally.

    The pause applies to the queue and to every `backfill apply`, which ends and reports it. A plan in the queue keeps its place.

    Exit code: 0 when the plan is paused, 1 when it was paused already, or is stopped, promoted or abandoned.

    Example: backfill pause p1a2b3c4d5 --reason "the month's close needs the cluster"
    """
    changed = controlled(plan, Control.PAUSED, reason)
    name = changed.plan.plan_id
    changed.tell(f"paused, {changed.going_on}", then=f"resume {name}", as_json=as_json)
