"""`backfill accept`: record that a difference found by a check of a plan is known and right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, PlanId  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.engine.review.known_differences import accept_difference
from backfill_assets.planning.plan.plan_json import read_plan


def accept(
    plan: PlanId,
    model: Annotated[str, typer.Argument(help="The model whose check has failed.")],
    check: Annotated[
        str, typer.Argument(help="The check's name, or a part of it that no other check has.")
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why the difference is right; required.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Accept the difference that a failed check of a plan has found, so that it does not stop the promotion.

    It counts only for the numbers that `backfill show PLAN` shows: if the check finds other numbers before the promotion, the acceptance
    is void, and the refusal says so. The difference becomes a known difference of the release.

    Exit code: 0 when the difference is accepted; 1 when the check has passed, has not run, or the plan is not open.

    Example: backfill accept p1a2b3c4d5 marketing.roi_analysis "only profit differs" --reason "refunds, agreed with finance"
    """
    with operating() as at:
        stored = kept_plan(at.store, plan)
        examined = read_plan(stored.content)
        at.may_change(stored.environment)
        accepted = accept_difference(
            at.store, stored, (model, check), who=str(at.who), reason=reason
        )
        left = before_publishing(at.project, examined)
    if as_json:
        print_json(asdict(accepted))
        return
    say(f"{accepted.model}: {accepted.check}: {accepted.text}", indent=2)
    if line := left.next_line:
        say(line)
    say(f"{accepted.plan_id}: {accepted.words}.")
