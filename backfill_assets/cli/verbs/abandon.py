"""`backfill abandon`: give up a plan that is not promoted."""

from __future__ import annotations

from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.cli.verbs.evidence import told_evidence
from backfill_assets.engine.plans.plan_verbs import abandon_plan, given_up


def abandon(
    plan: PlanId,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Abandon a plan that is not promoted: no reader has seen its data, and no reader will.

    The cells that it has built are kept until `backfill gc` deletes them.

    Exit code: 0 when the plan is abandoned, also if it was abandoned before; 1 when it is promoted already.

    Example: backfill abandon p1a2b3c4d5 --reason "time-zone bug"
    """
    with operating() as at:
        named = given_up(kept_plan(at.store, plan))
        abandon_plan(at.working(), named, reason)
        evidence = told_evidence(at, named.plan_id)
    if as_json:
        print_json({"plan_id": named.plan_id, "status": "abandoned"})
        return
    say(evidence)
    say("Next: backfill gc --dry-run")
    say(
        f"{named.environment}: {named.plan_id} is abandoned; the environment reads the same data as before."
    )
