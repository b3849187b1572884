"""`backfill plan`: show what would change, cell by cell, before anything is written."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from backfill_assets.cli import plan_options as ask
from backfill_assets.cli.exits import CHANGES, DONE, WAITS
from backfill_assets.cli.looking import say_note
from backfill_assets.cli.operating import Operating, operating
from backfill_assets.cli.options import (
    AsJson,
    AsOf,
    Markdown,
    Select,
    Verbose,
    refuse_together,
)
from backfill_assets.cli.output import err, say
from backfill_assets.cli.plan_view import say_nothing_planned, show_plan
from backfill_assets.cli.stored_plans import write_plan
from backfill_assets.engine.plans.making import left_before, make_plan, new_environment
from backfill_assets.engine.review.around import around_plan
from backfill_assets.planning.plan import written_options as written
from backfill_assets.planning.plan.plan_json import plan_json
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.render.plan_life import next_commands, next_line
from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.engine.fill.outstanding import Outstanding
    from backfill_assets.planning.plan.plan import Plan


def plan(  # noqa: PLR0913, PLR0917 - one option for each thing that can be asked
    env: ask.Environment = "prod",
    restate: ask.Restate = None,
    restate_all_snapshots: ask.AllSnapshots = False,
    start: ask.Start = None,
    end: ask.End = None,
    end_bounded: ask.EndBounded = False,
    ignore_cron: ask.IgnoreCron = False,
    select: Select = None,
    skip_upstream: ask.SkipUpstream = False,
    forward_only: ask.ForwardOnly = False,
    effective_from: ask.EffectiveFrom = None,
    empty: ask.Empty = False,
    where: ask.Where = None,
    cutoff: ask.Cutoff = None,
    lift_cutoff: ask.LiftCutoffs = None,
    reason: ask.Reason = "",
    dual_run: ask.DualRun = 0,
    pause_schedules: ask.PauseSchedules = False,
    canary: ask.Canary = False,
    category: ask.Categories = None,
    strategy: ask.Strategies = None,
    kept_rows: ask.Kept = None,
    spark: ask.Spark = None,
    expect: ask.Expect = None,
    now: AsOf = None,
    out: ask.Out = None,
    verbose: Verbose = False,
    markdown: Markdown = False,
    as_json: AsJson = False,
) -> None:
    """Show what would change in an environment, cell by cell; only the plan itself is written.

    Without options the plan covers all changes of the code, all owed cells and all missing cells. `backfill apply ID` does exactly what was shown.

    Exit code: 0 when there is nothing to do, 2 when there are changes, 1 when the request can't be met, 3 when the plan is
    empty but stale cells wait, or a source could not be looked at.

    Example: backfill plan

    Example: backfill plan dev_refunds --select +marketing.roi_analysis

    Example: backfill plan --restate marketing.ad_events:2024-03-01..2024-03-30 --reason "sent twice"

    Example: backfill plan --expect "marketing.roi_analysis: only profit; rows within 2%; cost within 0.5% a month"
    """
    request = PlanRequest(
        environment=env, reason=reason,
        restate=written.restatements(restate),
        restate_all_snapshots=restate_all_snapshots,
        start=start, end=end,
        end_bounded=end_bounded, ignore_cron=ignore_cron,
        select=written.chosen(select), skip_upstream=skip_upstream,
        forward_only=forward_only, effective_from=effective_from,
        empty=empty,
        where=where, cutoff=cutoff,
        lift_cutoffs=written.chosen(lift_cutoff),
        dual_run_days=dual_run,
        pause_schedules=pause_schedules, canary=canary,
        categories=written.categories(category),
        strategies=written.strategies(strategy),
        kept_rows=written.kept_rows(kept_rows),
        spark=written.spark(spark), expect=ask.expected(expect),
    )  # fmt: skip
    _plan(request, out, written.instant(now), whole=verbose, as_json=as_json, markdown=markdown)


def _plan(
    request: PlanRequest,
    out: str | None,
    as_of: datetime | None,
    *,
    whole: bool,
    as_json: bool,
    markdown: bool,
) -> None:
    refuse_together(json=as_json, markdown=markdown)
    with operating() as at:
        own_request = replace(request, asked_by=str(at.who))
        made = make_plan(at.project, own_request, as_of, told=say_note)
        proposed, remaining = made.plan, left_before(at.project, made, as_of)
        if out:
            write_plan(proposed, out)
        _tell(at, proposed, remaining, whole=whole, as_json=as_json, markdown=markdown)
    if code := CHANGES if not proposed.is_empty else WAITS if remaining.is_open else DONE:
        raise typer.Exit(code)


def _tell(
    at: Operating,
    proposed: Plan,
    remaining: Outstanding,
    *,
    whole: bool,
    as_json: bool,
    markdown: bool,
) -> None:
    if remaining.warning:
        say(remaining.warning, to=err, indent=2)
    if as_json:
        sys.stdout.write(plan_json(proposed) + "\n")
    elif markdown:
        sys.stdout.write(plan_markdown(proposed, at.naming_of(proposed), around_plan(at, proposed)))
    elif proposed.is_empty:
        say_nothing_planned(proposed, remaining)
    else:
        show_plan(at, proposed, after=_after(at, proposed), left=remaining.words, whole=whole)


def _after(at: Operating, proposed: Plan) -> tuple[str, ...]:
    before = dict.fromkeys(each.plan_id for each in proposed.in_flight if each.blocks)
    commands = [f"backfill show {plan_id}" for plan_id in before] or next_commands(
        proposed.plan_id, PlanStatus.PROPOSED.value
    )
    new = new_environment(at.project, proposed.environment)
    made_by = f"{proposed.environment} does not exist yet: applying makes it, and it follows prod."
    return (
        *((made_by,) if new else ()),
        "Nothing has been written.",
        next_line(commands),
    )
