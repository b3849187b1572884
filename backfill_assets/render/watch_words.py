"""How long a plan is compared before it is promoted, when that is, and how long it is watched then, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text
from backfill_assets.render.plan_words import counted

if TYPE_CHECKING:
    from backfill_assets.planning.review.aftercare import Watch
    from backfill_assets.planning.review.appointment import Appointment
    from backfill_assets.planning.review.dual_run import DualRun


def watch_text(watch: Watch) -> str:
    """Say how long a plan is watched, how often it was looked at, and what was found."""
    wrong = sum(bool(look.detail["found"]) for look in watch.looks)
    found = "all well" if not wrong else f"{wrong} of them not well"
    if watch.looks and wrong and not watch.found:
        found += ", the last one well"
    looks = f"{counted(len(watch.looks), 'look')}, {found}" if watch.looks else "no look yet"
    begin = "was watched" if watch.ended else "is watched"
    return f"{begin} until {minute_text(watch.until)}, {looks}"


def dual_run_text(dual: DualRun) -> str:
    """Say until when both histories are filled, how often they were compared, and what was found last."""
    times = counted(len(dual.compared), "comparison")
    found = dual.refused or "every difference explained"
    compared = f"{times}, in the last one: {found}" if dual.compared else "not compared yet"
    return f"both histories are filled until {minute_text(dual.until)}; {compared}"


def appointment_text(found: Appointment | None) -> str:
    """Say when a plan is to be promoted, and who asked for it."""
    if found is None:
        return "has no appointment"
    why = f": {found.why}" if found.why else ""
    return f"is to be promoted on {minute_text(found.at)}, asked for by {found.who}{why}"
