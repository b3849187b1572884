"""`backfill approve`: sign for a plan exactly as it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.approvals import approve as give_approval, to_approve
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.intervals.instants import minute_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.review.reviewed import Reviewed


def approve(
    plan: PlanId,
    yes: Yes = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Approve a built plan, as the principal whose SSH key signs.

    The signature binds each part of the plan as it is now: its content, every built cell, the results of its audits and checks, the
    accepted differences, its consumers, its inventory, the policy, the estimate, and the way back. Any later change of a part voids the approval. Look at `backfill diff` first.

    Exit code: 0 when the approval is signed and kept, 1 when it was refused: then nothing was written.

    Example: backfill approve p1a2b3c4d5 --reason "agreed with finance"
    """
    with operating() as at:
        of = to_approve(at.project, kept_plan(at.store, plan).plan_id)
        parts = bound_parts(of)
        _show(of, parts)
        confirm(
            f"approve plan {of.plan.plan_id} for {of.plan.environment}, signed with your key",
            yes=yes,
        )
        made = give_approval(of, parts, reason)
        now = before_publishing(at.project, of.plan)
    lacking = now.lacking
    if as_json:
        print_json(
            {
                "plan_id": made.plan_id,
                "principal": made.principal,
                "at": made.at,
                "expires": made.expires,
                "lacking": list(lacking),
            }
        )
        return
    for reason_ in lacking:
        say(f"still required: {reason_}", indent=2)
    for clause in now.answers.awaits:
        say(f"awaited: {clause}", indent=2)
    if line := now.next_line:
        say(line)
    say(f"{made.plan_id}: approved by {made.principal}, until {minute_text(made.expires)} at most.")


def _show(of: Reviewed, parts: Mapping[str, str]) -> None:
    """Show what would be signed."""
    models = ", ".join(planned.model for planned in of.plan.models)
    say(
        f"plan {of.plan.plan_id} for {of.plan.environment}, by {of.plan.request.asked_by}: {models}",
        to=err,
    )
    for name, part in parts.items():
        say(f"  {name:<14} {part}", to=err)
