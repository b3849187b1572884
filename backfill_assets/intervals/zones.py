"""Convert between instants and the local calendar of a time zone; each zone is loaded once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import epoch_of, instant_of

DAY = 86_400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SCANNED = (-15 * 365 * DAY, 130 * 365 * DAY)
_SCAN_STEP = 7 * DAY


class UnknownZoneError(BackfillAssetsError):
    """A time zone is not in the tz database."""

    def __init__(self, zone: str) -> None:
        super().__init__(
            f"time zone {zone!r} is unknown; use a name of the tz database, "
            "for example 'UTC' or 'Europe/Berlin'"
        )
        self.zone = zone


@cache
def zone_of(name: str) -> ZoneInfo:
    """The zone of that name.

    Raises:
        UnknownZoneError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZoneError(name) from error


@lru_cache(maxsize=1 << 16)
def local_day(zone: str, epoch: int) -> int:
    """The ordinal of the local calendar day of an epoch second.

    Where clocks were set back over midnight (St. John's until 2010), a day that has begun goes on.
    """
    if zone == "UTC":
        return epoch // DAY + EPOCH_ORDINAL
    ordinal = instant_of(epoch).astimezone(zone_of(zone)).toordinal()
    return ordinal + (midnight(zone, ordinal + 1) <= epoch)


@lru_cache(maxsize=1 << 16)
def midnight(zone: str, ordinal: int) -> int:
    """The epoch second at which a local calendar day begins.

    Where clocks skip midnight that is the first instant after the skip, and where they repeat it
    the first of the two (both are what `fold=0` means).
    """
    if zone == "UTC":
        return (ordinal - EPOCH_ORDINAL) * DAY
    local = datetime.fromordinal(ordinal).replace(tzinfo=zone_of(zone))
    return epoch_of(local.astimezone(UTC))


def is_month_start(zone: str, epoch: int) -> bool:
    """Whether a local month begins at an epoch second."""
    ordinal = local_day(zone, epoch)
    return date.fromordinal(ordinal).day == 1 and midnight(zone, ordinal) == epoch


def offset_at(zone: str, epoch: int) -> int:
    """How many seconds local clocks are ahead of UTC."""
    offset = instant_of(epoch).astimezone(zone_of(zone)).utcoffset() or timedelta()
    return int(offset.total_seconds())


@cache
def phases(zone: str, step: int) -> tuple[tuple[int, int], ...]:
    """Where a grid of `step` seconds on local clocks lies against UTC, as `(since, phase)`.

    One entry for nearly every zone: clocks move by whole steps. More where they moved by a part of
    one (Lord Howe Island twice a year, Caracas in 2007).
    """
    if zone == "UTC":
        return ((_SCANNED[0], 0),)
    shifts = [(_SCANNED[0], -offset_at(zone, _SCANNED[0]) % step)]
    for epoch in range(_SCANNED[0] + _SCAN_STEP, _SCANNED[1], _SCAN_STEP):
        phase = -offset_at(zone, epoch) % step
        if phase != shifts[-1][1]:
            shifts.append((_moved_at(zone, step, epoch - _SCAN_STEP, epoch), phase))
    return tuple(shifts)


def _moved_at(zone: str, step: int, before: int, after: int) -> int:
    """The first second of the new phase, by bisection."""
    new = -offset_at(zone, after) % step
    while after - before > 1:
        middle = (before + after) // 2
        if -offset_at(zone, middle) % step == new:
            after = middle
        else:
            before = middle
    return after


@cache
def is_utc(zone: str) -> bool:
    """Whether local clocks always show UTC, under whatever name."""
    return zone == "UTC" or not any(offset_at(zone, at) for at in range(*_SCANNED, _SCAN_STEP))
