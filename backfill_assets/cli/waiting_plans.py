"""Show waiting plans, and until when they block late data; and watched plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import say
from backfill_assets.engine.project.plan_age import open_plans, waits_until
from backfill_assets.engine.review.aftercare import watches
from backfill_assets.engine.review.before_publishing import commands_now
from backfill_assets.intervals.instants import minute_text
from backfill_assets.planning.plan.outline import why_unreadable
from backfill_assets.planning.review.aftercare import watch_json
from backfill_assets.planning.review.appointment import appointment_json, appointment_of
from backfill_assets.planning.review.dual_run import dual_run_json, dual_run_of
from backfill_assets.render.plan_life import commands_of, watch_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import Plan


def waiting_plans(run: RunContext) -> list[dict[str, Any]]:
    """Describe the open plans of a run's environment, for programs, without refreshes of late data."""
    environment = run.environment.name
    plans = (plan for plan in open_plans(run.store) if plan.environment == environment)
    return [_row(run, plan) for plan in plans if not plan.request.late]


def watched_plans(run: RunContext) -> dict[str, Any]:
    """Describe the watches over promotions in a run's environment, by plan, for programs."""
    watched = watches(run.store, run.environment.name)
    return {
        plan_id: {**(watch_json(watch) or {}), "text": watch_text(watch)}
        for plan_id, watch in watched.items()
    }


def say_waiting(rows: Iterable[dict[str, Any]]) -> None:
    """Write for each plan until when it blocks late data, and what ends the wait."""
    for row in rows:
        which = f"{row['plan']} ({row['status']}, asked for by {row['asked_by']})"
        how = " or ".join(row["next"])
        since, until = minute_text(row["since"]), minute_text(row["until"])
        if row["outwaited"]:
            text = f"waited until {until}: it no longer blocks late data, and it can't be promoted"
        else:
            text = f"waits since {since} and blocks late data until {until}"
        if row["unreadable"]:
            text += f"; it can't be read: {row['unreadable']}"
        if row["pauses_schedules"]:
            text += "; the schedules of its models are paused"
        if row["dual_run"]:
            text += f"; a dual run until {minute_text(row['dual_run']['until'])}"
        if row["appointment"]:
            text += f"; to be promoted on {minute_text(row['appointment']['at'])}"
        say(f"plan     {which} {text}; {how}", indent=2)


def _row(run: RunContext, plan: Plan) -> dict[str, Any]:
    stored, until = run.store.plans.get(plan.plan_id), waits_until(run.store, plan)
    outwaited, unreadable = until <= run.clock(), why_unreadable(stored)
    events = run.store.plans.events(plan.plan_id)
    dual = dual_run_of(plan.request.dual_run_days, events)
    if unreadable:
        commands = commands_of(plan.plan_id, ("abandon",))
    else:
        commands = commands_now(run.project, plan)
    return {
        "plan": plan.plan_id,
        "status": stored.status.value,
        "asked_by": plan.request.asked_by,
        "since": until - (plan.expires_at - plan.created_at),
        "until": until,
        "outwaited": outwaited,
        "unreadable": unreadable,
        "models": [*dict.fromkeys(planned.model for planned in plan.models)],
        "pauses_schedules": plan.request.pause_schedules,
        "dual_run": dual_run_json(dual),
        "appointment": appointment_json(appointment_of(events)),
        "next": [each for each in commands if not each.startswith("backfill diff")],
    }
