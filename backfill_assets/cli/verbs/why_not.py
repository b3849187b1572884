"""`backfill why-not`: explain why a cell is not in a plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backfill_assets.cli.looking import say_note
from backfill_assets.cli.named_model import cells_named, model_named
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import plan_named
from backfill_assets.engine.plans.making import look_at_sources, plan_of
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.render import why_not as answers

CURRENT = "current"


def why_not(
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    interval: Annotated[
        str, typer.Argument(help="A partition key, or FIRST..LAST: keys or dates, both included.")
    ],
    plan: Annotated[
        str,
        typer.Option(
            metavar="PLAN", help="A plan's id; `current` is what `backfill plan` would say now."
        ),
    ] = CURRENT,
    env: Annotated[
        str, typer.Option(metavar="NAME", help="The environment that `current` is planned for.")
    ] = "prod",
    as_json: AsJson = False,
) -> None:
    """Tell why cells are not in a plan; nothing is written, not even a plan.

    Exit code: 0, whatever the reason is.

    Example: backfill why-not marketing.campaign_trends_monthly 2024-03-01 --plan p1a2b3c4d5

    Example: backfill why-not web.sessions 2025-05-01..2025-05-31
    """
    with looking() as at:
        declared = model_named(at.graph, model)
        cells = cells_named(declared.cadence, interval)
        if plan == CURRENT:
            request = PlanRequest(environment=env, asked_by=str(at.who))
            look_at_sources(at.project, say_note)
            examined, name = plan_of(at.project, request), "a plan made now"
        else:
            examined = plan_named(at.store, plan)
            name = f"plan {examined.plan_id}"
        all_reasons = answers.why_not(examined, at.naming_of(examined), model, cells)
    if as_json:
        print_json([asdict(reason) for reason in all_reasons])
        return
    for reason in all_reasons:
        what = "planned" if reason.planned else "not planned"
        say(f"{model} {reason.cells}: {what}: {reason.text}", indent=4)
    missed = sum(not reason.planned for reason in all_reasons)
    reasons = counted(len(all_reasons), "reason")
    say(f"{name}: {reasons}, {missed:,} of them why cells are left out.")
