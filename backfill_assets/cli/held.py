"""Tell which consumers are held, since when, and that a plan does not touch them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import say
from backfill_assets.intervals.instants import minute_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime, timedelta

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.hold import Hold
    from backfill_assets.state.store import Store


def holds_of(store: Store, environment: str, models: Collection[str]) -> tuple[Hold, ...]:
    """Read the holds of an environment that concern some of these models."""
    return tuple(
        hold
        for hold in store.holds.all()
        if hold.of == environment and not set(hold.models).isdisjoint(models)
    )


def say_holds(holds: Iterable[Hold], now: datetime) -> None:
    """Write a line for each hold; an overdue hold in red."""
    for hold in holds:
        say(hold_text(hold, now), indent=2, style="red" if hold.is_overdue(now) else None)


def holds_json(holds: Iterable[Hold], now: datetime) -> list[dict[str, Any]]:
    """Describe holds for programs."""
    return [
        {
            "consumer": hold.consumer,
            "reads": hold.environment,
            "models": list(hold.models),
            "since": hold.held_at.isoformat(),
            "until": hold.until.isoformat() if hold.until else None,
            "overdue": hold.is_overdue(now),
            "by": hold.who,
            "reason": hold.reason,
        }
        for hold in holds
    ]


def untouched(store: Store, plan: Plan, now: datetime) -> tuple[str, ...]:
    """Say which held consumers read models of a plan, and so are not touched by it."""
    models = [*(planned.model for planned in plan.models), *plan.removed]
    return tuple(
        untouched_text(hold, models, now) for hold in holds_of(store, plan.environment, models)
    )


def hold_text(hold: Hold, now: datetime) -> str:
    """Say what a consumer is held at, since when, and until when."""
    why = f" ({hold.reason})" if hold.reason else ""
    release = f"backfill release '{hold.consumer}'"
    text = f"{hold.consumer} reads {', '.join(hold.models)} as {hold.of} published them {_since(hold, now)}"
    if hold.until is None:
        return f"held     {text}, by {hold.who}{why}; `{release}`"
    until = minute_text(hold.until)
    if hold.is_overdue(now):
        return f"OVERDUE  {text}, by {hold.who}{why}; it was to end on {until}, and goes on until `{release}`"
    return f"held     {text}, until {until}, by {hold.who}{why}; `{release}`"


def untouched_text(hold: Hold, models: Collection[str], now: datetime) -> str:
    """Say that a change of these models does not reach a held consumer."""
    read = ", ".join(model for model in hold.models if model in models)
    overdue = ", and should have been released by now" if hold.is_overdue(now) else ""
    return f"Not touched: {hold.consumer}, held {_since(hold, now)}, goes on reading {read} as before{overdue}."


def _since(hold: Hold, now: datetime) -> str:
    return f"on {minute_text(hold.held_at)} ({_age(now - hold.held_at)} ago)"


def _age(age: timedelta) -> str:
    if age.days:
        return f"{age.days} day{'' if age.days == 1 else 's'}"
    hours = age.seconds // 3600
    return f"{hours} h" if hours else f"{age.seconds // 60} min"
