"""Off-peak: a stretch of every day, by the clocks of a zone, in which a plan may be released.

The window is in wall-clock time. On a day on which clocks skip an hour of it, it is shorter; on a day on
which they repeat one, it is longer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import epoch_of, in_utc
from backfill_assets.intervals.zones import DAY, offset_at, zone_of

if TYPE_CHECKING:
    from datetime import datetime

_TEXT = re.compile(r"(\d\d):([0-5]\d)-(\d\d):([0-5]\d) (\S+)", re.ASCII)
_HOUR, _MINUTE = 3600, 60


class InvalidOffPeakError(BackfillAssetsError):
    """A text names no stretch of a day."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(
            f"off-peak window '{text}' can't be read; expected two different times of the day and a "
            "time zone, such as '22:00-06:00 Europe/Berlin'"
        )


@dataclass(frozen=True, slots=True)
class OffPeak:
    """A stretch of every day; one that closes before it opens lies over midnight.

    Attributes:
        opens: seconds since midnight on the zone's clocks, included.
        closes: the same, not included.
        zone: a name of the tz database.
    """

    opens: int
    closes: int
    zone: str

    def covers(self, instant: datetime) -> bool:
        """Whether the window is open at an instant."""
        epoch = epoch_of(in_utc(instant))
        clock = (epoch + offset_at(self.zone, epoch)) % DAY
        if self.opens < self.closes:
            return self.opens <= clock < self.closes
        return clock >= self.opens or clock < self.closes

    def __str__(self) -> str:
        return f"{_shown(self.opens)}-{_shown(self.closes)} {self.zone}"


def read_off_peak(text: str) -> OffPeak:
    """Read a window such as ``22:00-06:00 Europe/Berlin``.

    Raises:
        InvalidOffPeakError: it names no stretch of a day.
        UnknownZoneError: there is no such time zone.
    """
    match = _TEXT.fullmatch(" ".join(text.split()))
    if match is None:
        raise InvalidOffPeakError(text)
    hour, minute, until_hour, until_minute = map(int, match.groups()[:4])
    opens, closes = hour * _HOUR + minute * _MINUTE, until_hour * _HOUR + until_minute * _MINUTE
    if opens >= DAY or closes > DAY or opens == closes % DAY:
        raise InvalidOffPeakError(text)
    return OffPeak(opens, closes % DAY, zone_of(match[5]).key)


def _shown(seconds: int) -> str:
    return f"{seconds // _HOUR:02d}:{seconds % _HOUR // _MINUTE:02d}"
