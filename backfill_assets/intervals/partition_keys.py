"""Partition keys: the name of a cell, identical to the one that Dagster gives it.

The key of a day or a longer cell is the local date on which it starts. The key of an hour or minute is
the local time; where clocks repeat an hour, the second one has its offset (`2024-10-27-02:00+0100`).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.grid import Unit, grid_of
from backfill_assets.intervals.instants import no_such_day
from backfill_assets.intervals.interval import epoch_of, instant_of
from backfill_assets.intervals.zones import local_day, midnight, zone_of

_WHOLE_KEY = "whole"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2}-\d{2}:\d{2})([+-]\d{4})?")
_EXAMPLE_AT = 1_717_200_000  # 2024-06-01Z


class PartitionKeyError(BackfillAssetsError):
    """A text is not the key of a cell."""

    def __init__(self, key: str, unit: Unit, zone: str) -> None:
        grid = grid_of(unit, zone)
        meant = None if no_such_day(key) else _read(key, Unit.DAY, zone)
        example = key_at(grid.boundary(grid.index(meant or _EXAMPLE_AT)), unit, zone)
        problem = (
            no_such_day(key) or f"{key!r} is not the key of a cell of one {unit.value} in {zone}"
        )
        super().__init__(f"{problem}; a right one is {example!r}")
        self.key = key
        self.example = example


def key_at(start: int, unit: Unit, zone: str) -> str:
    """The key of the cell that starts at an epoch second."""
    if unit is Unit.WHOLE:
        return _WHOLE_KEY
    if not unit.is_subday:
        return date.fromordinal(local_day(zone, start)).isoformat()
    local = instant_of(start).astimezone(zone_of(zone))
    return local.strftime("%Y-%m-%d-%H:%M%z" if local.fold else "%Y-%m-%d-%H:%M")


def start_of_key(key: str, unit: Unit, zone: str) -> int:
    """The epoch second at which the cell of this key starts.

    Raises:
        PartitionKeyError: no cell has exactly this key.
    """
    grid = grid_of(unit, zone)
    start = None if no_such_day(key) else _read(key, unit, zone)
    if start is None or grid.boundary(grid.index(start)) != start:
        raise PartitionKeyError(key, unit, zone)
    if key_at(start, unit, zone) != key:  # an hour that clocks skip, or an offset out of place
        raise PartitionKeyError(key, unit, zone)
    return start


def _read(key: str, unit: Unit, zone: str) -> int | None:
    if unit is Unit.WHOLE:
        return 0 if key == _WHOLE_KEY else None
    try:
        if not unit.is_subday:
            day = date.fromisoformat(key) if _DATE.fullmatch(key) else None
            return midnight(zone, day.toordinal()) if day else None
        match = _TIME.fullmatch(key)
        if match is None:
            return None
        local = datetime.strptime(match[1], "%Y-%m-%d-%H:%M").replace(tzinfo=zone_of(zone))
    except (ValueError, OverflowError):
        return None
    return epoch_of(local.replace(fold=1 if match[2] else 0).astimezone(UTC))
