"""`backfill promote`: publish what a plan has built in its environment, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.cli.progress import shown
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.cli.telling import tell_quietly
from backfill_assets.cli.told_cells import say_cells
from backfill_assets.cli.verbs.evidence import told_evidence
from backfill_assets.engine.plans.plan_verbs import promote_plan
from backfill_assets.engine.plans.told_cells import cells_json, cells_told
from backfill_assets.engine.review.aftercare import ask_watch
from backfill_assets.engine.review.appointments import appoint_at, refuse_time
from backfill_assets.engine.review.around import untouched
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.review.aftercare import read_watch, watch_of
from backfill_assets.planning.review.appointment import appointment_json, is_never
from backfill_assets.render.actual import actual_text
from backfill_assets.render.plan_life import (
    appointment_text,
    next_commands,
    next_line,
    promoted_before_text,
)
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus, promotion_of

if TYPE_CHECKING:
    from datetime import timedelta

    from backfill_assets.cli.operating import Operating
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.review.aftercare import Watch

_Watch = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Watch what it publishes for this long, such as 24h; see `aftercare`."
    ),
]
_At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Promote at this time, such as 'Sun 03:00 Europe/Berlin' or an instant; `never` cancels the appointment.",
    ),
]


def promote(
    plan: PlanId,
    yes: Yes = False,
    reason: Why = "",
    time: _At = None,
    watch: _Watch = None,
    as_json: AsJson = False,
) -> None:
    """Move every pointer of a plan at once, so that its environment reads the data that the plan has built.

    Readers see the old or the new data in all models, never a mix. The promotion is refused, with a list, if a planned cell is not ready with
    its audits, or if an input or a target of the plan has changed. Cells that were published in the meantime are carried over.

    With `--at` the sensor promotes the plan at that time, after checking everything again; `backfill show` shows a refusal.

    Exit code: 0 when the plan is published, now or before, or has its appointment; 1 when it was refused: then nothing was published.

    Example: backfill promote p1a2b3c4d5 --reason "agreed with finance"

    Example: backfill promote p1a2b3c4d5 --yes --watch 24h --json

    Example: backfill promote p1a2b3c4d5 --at "Sun 03:00 Europe/Berlin"
    """
    watched = None if watch is None else read_watch(watch)
    with operating() as at:
        stored = kept_plan(at.store, plan)
        named = read_plan(stored.content)
        if stored.status is PlanStatus.PROMOTED:
            refuse_time(named.plan_id, time)
            _ask_watch(at, named, watched)
            _already(at, named, as_json=as_json)
            return
        at.may_change(named.environment)
        if not is_never(time):
            _confirm(at, named, time, yes=yes)
        if stored.status in OPEN:  # before: a process that dies afterwards leaves no watch out
            _ask_watch(at, named, watched)
        if time is not None:
            _appoint(at, named, time, reason, as_json=as_json)
            return
        _promote(at, named, reason, as_json=as_json)


def _promote(at: Operating, named: Plan, reason: str, *, as_json: bool) -> None:
    """Promote a plan now, and tell what its environment reads."""
    say(f"promoting {named.plan_id}, run {at.run_id}", to=err)
    with shown(at.graph, {}) as listener:
        promoted = promote_plan(at.working(listener), named, reason or named.request.reason)
    naming = at.naming_of(named)
    appended = naming.by_model(promoted.carried)
    cells = cells_told(at, named, promoted.number)
    actual = at.taken(named)
    evidence = told_evidence(at, named.plan_id)
    tell_quietly(at, named.environment)
    watching = watch_of(at.store.plans.events(named.plan_id))
    if as_json:
        print_json(
            {
                "plan_id": named.plan_id,
                "environment": named.environment,
                "number": promoted.number,
                "appended": appended,
                "removed": list(promoted.removed),
                "watched_until": watching.until if watching else None,
                **cells_json(naming, cells),
            }
        )
        return
    say_cells(naming, cells)
    for line in (*_besides(appended, promoted), actual_text(named, actual)):
        say(line, indent=2)
    say(evidence)
    _say_next(named, watching)
    say(f"{named.environment}: {_reads(named, f'as {named.plan_id} built them')}.")


def _appoint(at: Operating, plan: Plan, time: str, reason: str, *, as_json: bool) -> None:
    """Ask for the promotion at a time, or take the appointment back."""
    made = appoint_at(at.project, plan.plan_id, time, reason)
    if as_json:
        print_json({"plan_id": plan.plan_id, "appointment": appointment_json(made)})
        return
    if made:
        say(
            f"Next: backfill promote {plan.plan_id} --at never, to take it back; where no sensor runs,"
        )
        say(f"backfill promote {plan.plan_id} at that time", indent=6)
    say(f"{plan.plan_id} {appointment_text(made)}.")


def _ask_watch(at: Operating, plan: Plan, time: timedelta | None) -> None:
    if time is not None:
        ask_watch(at.project, plan.plan_id, time)


def _besides(appended: dict[str, str], promoted: Outcome) -> tuple[str, ...]:
    """Say what was published beside the cells of the plan."""
    named = (f"appended since it was made: {name} {cells}" for name, cells in appended.items())
    return (*named, *(f"removed: {name}" for name in promoted.removed))


def _reads(plan: Plan, how: str) -> str:
    """Say what becomes of the models that an environment reads, by number, and by name of those that it loses."""
    models = [f"reads {counted(len(plan.models), 'model')} {how}"] if plan.models else []
    lost = [f"no longer reads {', '.join(plan.removed)}"] if plan.removed else []
    return ", and ".join([*models, *lost])


def _say_watch(plan: Plan, watching: Watch | None) -> None:
    if watching and not watching.ended:
        until = minute_text(watching.until)
        say(f"Watched until {until}: backfill aftercare {plan.plan_id}, or the sensor, looks")


def _say_next(plan: Plan, watching: Watch | None) -> None:
    _say_watch(plan, watching)
    commands = next_commands(plan.plan_id, PlanStatus.PROMOTED.value)
    say(f"{next_line(commands)} to go back")


def _already(at: Operating, plan: Plan, *, as_json: bool) -> None:
    """Say when and by whom a plan was promoted before, and until when it is watched."""
    plan_id = plan.plan_id
    events = at.store.plans.events(plan_id)
    done, watching = promotion_of(events), watch_of(events)
    if as_json:
        number = done.detail.get("number") if done else None
        print_json(
            {
                "plan_id": plan_id,
                "promoted_at": done.at if done else None,
                "promoted_by": done.who if done else None,
                "number": number,
                "watched_until": watching.until if watching else None,
                **cells_json(at.naming_of(plan), cells_told(at, plan, number)),
            }
        )
        return
    _say_watch(plan, watching)
    say(f"{plan_id}: {promoted_before_text(done)}.")


def _confirm(at: Operating, plan: Plan, time: str | None, *, yes: bool) -> None:
    """Say whom it does not touch, and ask."""
    for text in untouched(at.store, plan, at.project.clock()):
        say(f"Not touched: {text}", to=err)
    since = "now" if time is None else time
    reads = _reads(plan, f"with other data from {since} on")
    effect = f"promote plan {plan.plan_id}: {plan.environment} {reads}"
    if plan.protected:
        confirm(effect, yes=yes)
