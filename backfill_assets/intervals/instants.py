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
_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""The years of which every cell begins and ends, in each zone, at an instant that Python has."""


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
    """Say that a text begins with a day that no cell has, such as 2024-02-30; empty where it doesn't."""
    written = _DATE.match(text)
    if not written:
        return ""
    try:
        day = date.fromisoformat(written[0])
    except ValueError:
        return f"{text!r} is no day of the calendar"
    return "" if _has_cells(day) else f"{text!r} is not of the years {_FIRST_YEAR} to {_LAST_YEAR}"


def _has_cells(day: date) -> bool:
    return _FIRST_YEAR <= day.year <= _LAST_YEAR


def read(when: When) -> date | datetime:
    """A plain date, or an aware instant in UTC.

    Raises:
        InstantFormatError: the text is neither, or an instant without an offset; or it lies so far
            from today that its cell would not end in a year that Python has.
        RequestError: a datetime without a time zone.
    """
    value = when if isinstance(when, date) else _read_text(str(when))
    if not _has_cells(value):
        raise InstantFormatError(value.isoformat())
    return in_utc(value) if isinstance(value, datetime) else value


def _read_text(text: str) -> date | datetime:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise InstantFormatError(text) from error
    if instant.tzinfo is None:
        raise InstantFormatError(text)
    return instant


def minute_text(instant: datetime) -> str:
    """Write an instant in UTC to the minute, as people read it."""
    return f"{instant:%Y-%m-%d %H:%M} UTC"


def day_text(instant: datetime) -> str:
    """Write an instant in UTC as the day that begins then, or to the minute where none does."""
    return minute_text(instant).removesuffix(" 00:00 UTC")


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
