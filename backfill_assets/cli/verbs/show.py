"""`backfill show`: show any plan, its status, and every event of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Markdown, PlanId, Verbose, refuse_together
from backfill_assets.cli.output import Heading, bar, out, print_json, print_table, say
from backfill_assets.cli.plan_view import print_end, print_plan
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.cli.watching import watch
from backfill_assets.engine.review.around import around_plan
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.evidence.manifest import REFUSED
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.review.aftercare import watch_json, watch_of
from backfill_assets.planning.review.appointment import appointment_json, appointment_of
from backfill_assets.planning.review.dual_run import dual_run_json, dual_run_of
from backfill_assets.render.plan_life import (
    appointment_text,
    check_text,
    checks_markdown,
    dual_run_text,
    next_line,
    progress,
    status_text,
    watch_text,
)
from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus

if TYPE_CHECKING:
    from backfill_assets.cli.watching import PlanProgress
    from backfill_assets.engine.review.before_publishing import BeforePublishing
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_life import Progress
    from backfill_assets.snapshots.stored_plan import PlanEvent, StoredPlan
    from backfill_assets.state.evidence import EvidenceRecord
    from backfill_assets.state.store import Store


def show(
    plan: PlanId,
    verbose: Verbose = False,
    markdown: Markdown = False,
    follow: Annotated[
        bool,
        typer.Option("--watch", help="Follow the plan's progress until its build ends."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a plan as it was made, its status, and its events.

    With `--watch` the command follows the plan, whether the queue, a run in the UI or a command builds it. Ctrl-C ends the watching, not the plan.

    Exit code: 0, whatever the status is; with `--watch` 1, when all remaining cells have failed.

    Example: backfill show p1a2b3c4d5

    Example: backfill show p1a --watch

    Example: backfill show p1a -v
    """
    refuse_together(json=as_json, markdown=markdown, watch=follow)
    with looking() as at:
        project, store = at.project, at.store
        stored = kept_plan(store, plan)
        shown = read_plan(stored.content)
        if follow:
            _after_watching(watch(project, shown), before_publishing(project, shown))
            return
        events, refused = store.plans.events(shown.plan_id), _refusals(store, shown)
        checked = before_publishing(project, shown)
        rows = store.batches.of_plan(shown.plan_id)
        around = around_plan(at, shown)
        live = store.limits.in_flight()
        naming = at.naming_of(shown)
    done = progress(shown, naming, rows, live)
    status = status_text(stored, project.clock())
    control, commands = checked.control, checked.commands
    if as_json:
        print_json(
            {
                **_json(stored, status, done, events),
                "refused": [{"at": end.at, "why": end.why} for end in refused],
                "control": control.value,
                "next": list(commands),
                **_agreed(checked),
                **_timed(shown, events),
            }
        )
    elif markdown:
        written = checks_markdown(checked.checks, checked.accepted)
        typer.echo(plan_markdown(shown, naming, around) + written, nl=False)
    else:
        print_plan(shown, naming, around, to=out, whole=verbose)
        say(f"Status    {status}{f', {control.words}' if control.holds else ''}")
        _print_history(shown, events, refused)
        _print_checks(checked, whole=verbose)
        if any(model.batches or model.running or model.failed for model in done):
            _table(done)
        print_end(shown, naming, (next_line(commands),), to=out)


def _agreed(checked: BeforePublishing) -> dict[str, Any]:
    """Give what the checks have found, and what is awaited, as plain values."""
    return {
        "checks": [asdict(check) for check in checked.checks],
        "accepted": [asdict(acceptance) for acceptance in checked.accepted],
        "awaits": list(checked.answers.awaits),
        "lacking": list(checked.lacking),
        "outwaited": checked.outwaited,
    }


def _timed(plan: Plan, events: list[PlanEvent]) -> dict[str, Any]:
    """Give what is done with a plan over time, as plain values."""
    return {
        "watch": watch_json(watch_of(events)),
        "dual_run": dual_run_json(dual_run_of(plan.request.dual_run_days, events)),
        "appointment": appointment_json(appointment_of(events)),
    }


def _refusals(store: Store, plan: Plan) -> list[EvidenceRecord]:
    """Read when and why a promotion of a plan was refused."""
    return [end for end in store.evidence.of_plan(plan.plan_id) if end.ended == REFUSED]


def _print_history(plan: Plan, events: list[PlanEvent], refused: list[EvidenceRecord]) -> None:
    """Print what happened to a plan, and why its promotion was refused; the looks of a watch are counted, not listed."""
    if dual := dual_run_of(plan.request.dual_run_days, events):
        say(f"Dual run  {dual_run_text(dual)}", indent=10)
    if appointment := appointment_of(events):
        say(f"Promotes  {appointment_text(appointment)}")
    if watch := watch_of(events):
        say(f"Watch     {watch_text(watch)}", indent=10)
    told = [
        (event.at, _event(event))
        for event in events
        if event.event != PlanEventKind.LOOKED or event.detail["found"]
    ]
    ends = [
        (end.at, f"          {minute_text(end.at)}  promotion refused: {end.why}")
        for end in refused
    ]
    for _, text in merge(told, ends, key=itemgetter(0)):
        say(text, indent=12)


def _print_checks(checked: BeforePublishing, *, whole: bool) -> None:
    """Print the results, and what is in the way; passed checks are only counted, unless everything is wanted."""
    if checked.outwaited:
        say(f"Waited    until {minute_text(checked.outwaited)}: it can't be continued any more")
    for clause in checked.lacking:
        say(f"Required  {clause}")
    for clause in checked.answers.awaits:
        say(f"Awaits    {clause}")
    passed = [check for check in checked.checks if check.passed]
    if passed and not whole:
        say(f"Checks    {counted(len(passed), 'check')} passed: -v shows them")
    for check in checked.checks:
        if whole or not check.passed:
            say(f"Check     {check.model}: {check_text(check, checked.accepted)}", indent=10)


def _after_watching(end: PlanProgress, checked: BeforePublishing) -> None:
    plan_id, status = checked.plan_id, end.where
    commands = checked.commands
    if not end.stands:
        begun = end.status is PlanStatus.APPLYING
        commands = (*([f"backfill abandon {plan_id}"] if begun else []), "backfill plan")
    if end.stuck:
        commands = ("backfill batches --failed", *commands)
        status = "all remaining cells have failed; the code or an input has to change"
    if commands:
        say(next_line(commands))
    say(f"{plan_id}: {status}.")
    if end.stuck:
        raise typer.Exit(FAILED)


def _json(
    stored: StoredPlan, status: str, done: tuple[Progress, ...], events: list[PlanEvent]
) -> dict[str, Any]:
    return {
        "plan": json.loads(stored.content),
        "status": status,
        "progress": [asdict(model) for model in done],
        "events": [asdict(event) for event in events],
    }


def _event(event: PlanEvent) -> str:
    who = f" by {event.who}" if event.who else ""
    why = event.why or "; ".join(event.detail.get("found", ()))
    why = f": {why}" if why else ""
    count = sum(event.detail.get("spared", {}).values())
    spared = f"; {counted(count, 'cell')} spared, what they read did not change" if count else ""
    return f"          {minute_text(event.at)}  {event.event}{who}{why}{spared}"


_HEADINGS = (
    Heading("model"),
    Heading("", spare=2),
    Heading("done", number=True),
    Heading("planned", number=True),
    Heading("batches", number=True, spare=1),
    Heading("at work", number=True),
    Heading("failed", number=True),
    Heading("rows", number=True, spare=3),
)


def _table(done: tuple[Progress, ...]) -> None:
    print_table(
        _HEADINGS,
        [
            (
                model.model,
                bar(model.done, model.planned),
                *(
                    f"{number:,}"
                    for number in (
                        model.done,
                        model.planned,
                        model.batches,
                        model.running,
                        model.failed,
                        model.rows,
                    )
                ),
            )
            for model in done
        ],
    )
