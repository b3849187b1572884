"""`backfill acknowledge`: answer for a consumer that a plan touches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.answers import answer
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.stored_plan import PlanEventKind


def acknowledge(
    plan: PlanId,
    consumer: Annotated[str, typer.Argument(help="The consumer's name in CONSUMERS.")],
    object_: Annotated[
        bool,
        typer.Option(
            "--object", help="Object: the plan is not promoted until the objection is withdrawn."
        ),
    ] = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Acknowledge, for a consumer, the changes of a built plan in the data that it reads; or object to them.

    An acknowledgement ends the consumer's notice period, and withdraws an objection. If the plan is built again, the answer is void. Under a
    policy it is signed with an SSH key: by the consumer's owner, or for a team by any allowed signer.

    Exit code: 0 when the answer is kept; 1 when the plan changes nothing for the consumer, is not built, or the key may not answer.

    Example: backfill acknowledge p1a2b3c4d5 "campaign dashboard" --reason "told the board"

    Example: backfill acknowledge p1a2b3c4d5 "campaign dashboard" --object --reason "the quarter closes on Friday"
    """
    with operating() as at:
        stored = kept_plan(at.store, plan)
        plan_id = stored.plan_id
        event = PlanEventKind.OBJECTED if object_ else PlanEventKind.ACKNOWLEDGED
        given = answer(at.project, plan_id, consumer, event, reason)
        left = before_publishing(at.project, read_plan(stored.content))
    awaits = left.answers.awaits
    if as_json:
        print_json({"plan_id": plan_id, **asdict(given), "awaits": list(awaits)})
        return
    for clause in awaits:
        say(f"awaited: {clause}", indent=2)
    if line := left.next_line:
        say(line)
    say(f"{plan_id}: {given.words}.")
