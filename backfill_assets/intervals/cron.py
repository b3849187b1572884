"""Find when a model is due by walking the ticks of its cron expression, never by the wall clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from croniter import CroniterBadDateError, croniter

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.interval import in_utc
from backfill_assets.intervals.zones import zone_of

_FIELDS = 5
_RANDOM = "r"
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression on the clocks of a zone.

    Raises:
        DeclarationError: the expression can't be read.
        UnknownZoneError: the zone is unknown.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        zone_of(self.zone)
        word = self.expression.startswith("@")
        fields = len(self.expression.split())
        if not croniter.is_valid(self.expression) or not (word or fields == _FIELDS):
            raise DeclarationError(
                found=f"cron {self.expression!r} can't be read",
                do="give five fields (minute hour day month weekday), for example '0 5 * * *', or "
                "a word such as '@daily'",
            )

    @property
    def ticks(self) -> bool:
        """Whether it ticks, at times that are the same whenever it is asked."""
        parts = (part for field in self.expression.split() for part in field.split(","))
        if any(part[:1].lower() == _RANDOM for part in parts):
            return False
        try:
            self.next(_ANY_TIME)
        except CroniterBadDateError:  # such as the 30th of February
            return False
        return True

    def floor(self, instant: datetime) -> datetime:
        """The last tick at or before an instant."""
        # The walk starts after the whole second that the instant lies in, to meet a tick on it.
        after = in_utc(instant).replace(microsecond=0) + timedelta(seconds=1)
        return _tick_before(self.expression, self.zone, after)

    def next(self, instant: datetime) -> datetime:
        """The first tick after an instant."""
        local = in_utc(instant).astimezone(zone_of(self.zone))
        return croniter(self.expression, local).get_next(datetime).astimezone(UTC)


@lru_cache(maxsize=4096)
def _tick_before(expression: str, zone: str, instant: datetime) -> datetime:
    """Remembered, since the hundreds of models of a graph share a few crons and one `now`."""
    local = instant.astimezone(zone_of(zone))
    return croniter(expression, local).get_prev(datetime).astimezone(UTC)


@lru_cache(maxsize=1024)
def cron_of(expression: str, zone: str) -> Cron:
    """The cron of an expression on the clocks of a zone, checked once.

    Raises:
        DeclarationError: the expression can't be read.
        UnknownZoneError: the zone is unknown.
    """
    return Cron(expression, zone)
