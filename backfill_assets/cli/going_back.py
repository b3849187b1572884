"""The shared part of the verbs that take a plan back: permission, question and report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.cli.asking import confirm
from backfill_assets.cli.output import err, say
from backfill_assets.cli.progress import shown
from backfill_assets.cli.telling import tell_quietly
from backfill_assets.cli.verbs.evidence import told_evidence
from backfill_assets.engine.plans.told_cells import back_told
from backfill_assets.intervals.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.cli.operating import Operating
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan


def taken_back(
    at: Operating,
    plan: Plan,
    operation: Callable[[Project, Plan, str], Outcome],
    effect: str,
    *,
    why: str,
    yes: bool,
) -> dict[str, Any]:
    """Take a plan back once it is confirmed, report to Dagster, and give the result as JSON values."""
    at.may_change(plan.environment)
    if plan.protected:
        confirm(effect, yes=yes)
    say(f"taking back {plan.plan_id}, run {at.run_id}", to=err)
    with shown(at.graph, {}) as listener:
        back = operation(at.working(listener), plan, why)
    tell_quietly(at, plan.environment)
    say(told_evidence(at, plan.plan_id), to=err)
    return back_told(at, plan, back)


def report_back(told: dict[str, Any], word: str) -> None:
    """Write what taking a plan back has published."""
    for name, ranges in told["published"].items():
        say(f"published {name}: {', '.join(ranges)}", indent=2)
    for name, ranges in told["gone"].items():
        say(f"gone {name}: {', '.join(ranges)}", indent=2)
    for name in told["removed"]:
        say(f"removed: {name}", indent=2)
    for name, cells in told["carried"].items():
        say(f"computed with the old logic: {name} {cells}", indent=2)
    environment, models = told["environment"], counted(len(told["models"]), "model")
    say(
        f"Next: backfill status --env {environment}, then backfill plan {environment} for what is stale"
    )
    say(f"{environment}: {told['plan_id']} {word}, {models}.")
