"""Appointments: the instant at which a plan that is built is to be promoted, once a person has asked for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import InstantFormatError, read
from backfill_assets.intervals.interval import in_utc
from backfill_assets.intervals.zones import zone_of
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.snapshots.stored_plan import PlanEvent


NEVER = "never"
"""Takes an appointment back."""

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TEXT = re.compile(r"(?:([a-z]{3,}) )?(\d\d):(\d\d)(?: (\S+))?", re.IGNORECASE | re.ASCII)
_WEEK = 7
_ENDS = {PlanEventKind.APPOINTMENT_ENDED, PlanEventKind.PROMOTED, PlanEventKind.ABANDONED}


@dataclass(frozen=True, slots=True)
class Appointment:
    """When a plan is to be promoted.

    Attributes:
        at: the instant (UTC).
        who: asked for it.
        why: in words.
        number: of the event that asked for it.
    """

    at: datetime
    who: str
    why: str
    number: int


def appointment_of(events: Iterable[PlanEvent]) -> Appointment | None:
    """Read the appointment that stands from a plan's history; None where none does."""
    stands = None
    for event in events:
        if event.event == PlanEventKind.APPOINTED:
            at = datetime.fromisoformat(event.detail["at"])
            stands = Appointment(at, event.who, event.why, event.number)
        elif event.event in _ENDS:
            stands = None
    return stands


def appointment_json(found: Appointment | None) -> dict[str, Any] | None:
    """Give an appointment as plain values."""
    return None if found is None else {"at": found.at, "who": found.who}


def is_never(text: str | None) -> bool:
    """Whether a text cancels the appointment instead of naming a time."""
    return text is not None and text.strip().lower() == NEVER


def next_time(text: str, now: datetime) -> datetime:
    """Give the instant that a text names (UTC): the next such time, of a weekday, by a zone's clocks.

    A time that clocks skip on that day comes as much later as they skip; of one that they repeat, it is the first.

    Args:
        text: ``Sun 03:00``, ``03:00 Europe/Berlin`` (UTC unless a zone is named), or an instant with its offset. A weekday is
            written in English, in full or cut off after three letters or more.
        now: the instant from which on it is looked for.

    Raises:
        RequestError: the text can't be read, or its instant is past.
        UnknownZoneError: there is no such time zone.
    """
    match = _TEXT.fullmatch(" ".join(text.split()))
    at = _instant(text) if match is None else _next(match, now)
    if at is None:
        raise RequestError(
            found=f"--at {text!r} can't be read",
            expected="a weekday and a time such as 'Sun 03:00 Europe/Berlin', or an instant with its offset",
            do=f"Write one of them, or '{NEVER}' to cancel the appointment; nothing was published",
        )
    if at <= now:
        raise RequestError(
            found=f"--at {text!r} is in the past",
            expected="an instant in the future",
            do="Nothing was published",
        )
    return at


def _instant(text: str) -> datetime | None:
    try:
        instant = read(text)
    except InstantFormatError:
        return None
    return instant if isinstance(instant, datetime) else None


def _next(match: re.Match[str], now: datetime) -> datetime | None:
    day, hour, minute, zone = match.groups()
    weekdays = [at for at, name in enumerate(_DAYS) if name.startswith((day or "").lower())]
    try:
        clock = time(int(hour), int(minute), tzinfo=zone_of(zone or "UTC"))
    except ValueError:
        return None
    today = now.astimezone(clock.tzinfo).date()
    days = (today + timedelta(days=ahead) for ahead in range(_WEEK + 1))
    instants = (
        in_utc(datetime.combine(each, clock)) for each in days if each.weekday() in weekdays
    )
    return next((at for at in instants if at > now), None)
