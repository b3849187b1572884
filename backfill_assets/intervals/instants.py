"""Read dates and instants as people write them: a date is a whole local day, an instant is exact."""

from __future__ import annotations

import re
from datetime import date, datetime

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import in_utc, instant_of
from backfill_assets.intervals.zones import midnight

When = str | date | datetime
"""What an author or user may write: `"2024-01-31"`, `"2024-01-31T06:00Z"`, or the typed value."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class InstantFormatError(BackfillAssetsError):
    """A date or an instant can't be read."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{no_such_day(text) or f'{text!r} is neither a date nor an instant'}; give a date such as '2024-01-31' (the "
            "whole day in the model's zone) or an instant with its offset such as "
            "'2024-01-31T06:00:00Z'"
        )
        self.text = text


def no_such_day(text: str) -> str:
    """Say that a text begins with a day that no calendar has, such as 2024-02-30; empty where it doesn't."""
    written = _DATE.match(text)
    try:
        date.fromisoformat(written[0] if written else "2024-01-01")
    except ValueError:
        return f"{text!r} is no day of the calendar"
    return ""


def read(when: When) -> date | datetime:
    """A plain date, or an aware instant in UTC.

    Raises:
        InstantFormatError: the text is neither, or an instant without an offset.
        RequestError: a datetime without a time zone.
    """
    if isinstance(when, datetime):
        return in_utc(when)
    if isinstance(when, date):
        return when
    try:
        if _DATE.fullmatch(when):
            return date.fromisoformat(when)
        instant = datetime.fromisoformat(when)
    except ValueError as error:
        raise InstantFormatError(when) from error
    if instant.tzinfo is None:
        raise InstantFormatError(when)
    return in_utc(instant)


def minute_text(instant: datetime) -> str:
    """Write an instant in UTC to the minute, as people read it."""
    return f"{instant:%Y-%m-%d %H:%M} UTC"


def start_at(when: When, zone: str) -> datetime:
    """The instant at which something that starts then starts; a date starts at local midnight."""
    value = read(when)
    return value if isinstance(value, datetime) else instant_of(midnight(zone, value.toordinal()))


def end_at(when: When, zone: str) -> datetime:
    """The exclusive end: a date includes its whole local day."""
    value = read(when)
    if isinstance(value, datetime):
        return value
    return instant_of(midnight(zone, value.toordinal() + 1))
