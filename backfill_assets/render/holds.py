"""Say which consumers are held, since when, and that a plan does not touch them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

    from backfill_assets.snapshots.hold import Hold


def hold_text(hold: Hold, now: datetime) -> str:
    """Say what a consumer is held at, since when, and until when."""
    why = f" ({hold.reason})" if hold.reason else ""
    release = f"backfill release {shlex.quote(hold.consumer)}"
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
    return f"{hold.consumer}, held {_since(hold, now)}, goes on reading {read} as before{overdue}."


def _since(hold: Hold, now: datetime) -> str:
    return f"on {minute_text(hold.held_at)} ({_age(now - hold.held_at)} ago)"


def _age(age: timedelta) -> str:
    if age.days:
        return f"{age.days} day{'' if age.days == 1 else 's'}"
    hours = age.seconds // 3600
    return f"{hours} h" if hours else f"{age.seconds // 60} min"
