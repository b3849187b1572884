"""Find when a model is due by walking the ticks of its cron expression, never by the wall clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from croniter import croniter

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import in_utc
from backfill_assets.intervals.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANCHOR = datetime(2024, 1, 1, tzinfo=UTC)
_MOST_TICKS = 400
_SPAN = timedelta(days=9 * 366)  # two leap days: the shortest February is surely among them
_FIELDS = 5
_INFERRED = [unit for unit in Unit if unit not in (Unit.WEEK, Unit.WHOLE)]  # weeks: by Weekly(...)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression on the clocks of a zone.

    Raises:
        DeclarationError: The expression can't be read.
        UnknownZoneError: The zone is unknown.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        zone_of(self.zone)
        word = self.expression.startswith("@")
        fields = len(self.expression.split())
        if not croniter.is_valid(self.expression) or not (word or fields == _FIELDS):
            raise DeclarationError(
                found=f"Cron {self.expression!r} can't be read",
                do="Give five fields (minute hour day month weekday), for example '0 5 * * *', or "
                "a word such as '@daily'.",
            )

    def floor(self, instant: datetime) -> datetime:
        """The last tick at or before an instant."""
        # The walk starts after the whole second that the instant lies in, to meet a tick on it.
        after = in_utc(instant).replace(microsecond=0) + timedelta(seconds=1)
        return _tick_before(self.expression, self.zone, after)

    def previous(self, instant: datetime) -> datetime:
        """The last tick before an instant."""
        tick = self.floor(instant)
        return tick if tick < instant else _tick_before(self.expression, self.zone, tick)

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
        DeclarationError: The expression can't be read.
        UnknownZoneError: The zone is unknown.
    """
    return Cron(expression, zone)


@lru_cache(maxsize=1024)
def unit_of_cron(expression: str) -> Unit:
    """The largest unit that fits into the smallest gap between ticks.

    Never a week: a weekly cron only sets when days become due; weeks as cells are declared by name.

    Raises:
        DeclarationError: The expression can't be read.
        DeclarationError: The smallest gap is under five minutes.
    """
    gap = min(after - before for before, after in pairwise(_ticks(Cron(expression))))
    fitting = [unit for unit in _INFERRED if timedelta(seconds=unit.shortest) <= gap]
    if not fitting:
        raise DeclarationError(
            found=f"Cron {expression!r} ticks every {gap}, but the smallest cell is 5 minutes",
            do="Give a cron that ticks at most every 5 minutes.",
        )
    return max(fitting, key=lambda unit: unit.shortest)


def _ticks(cron: Cron) -> Iterator[datetime]:
    """Enough ticks from a fixed instant to meet the smallest gap; at least two."""
    tick = cron.next(_ANCHOR)
    yield tick
    for _ in range(_MOST_TICKS):
        tick = cron.next(tick)
        yield tick
        if tick - _ANCHOR > _SPAN:
            return
