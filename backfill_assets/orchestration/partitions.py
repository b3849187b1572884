"""Partitions: a cadence as Dagster's own partitions definition; one cell is one partition."""

from datetime import datetime

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.cadence import WHOLE_CELL, Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import zone_of


def partitions_of(cadence: Cadence) -> dg.TimeWindowPartitionsDefinition | None:
    """Give the partitions whose keys are the cadence's keys; None for a table that is one cell.

    Raises:
        DeclarationError: Dagster has no such grid.
    """
    if cadence.unit is Unit.WHOLE or cadence.start is None:
        return None
    start = _local(cadence, cadence.start)
    end = _local(cadence, cadence.end) if cadence.end else None
    match cadence.unit:
        case Unit.HOUR:
            return dg.HourlyPartitionsDefinition(start, end_date=end, timezone=cadence.tz)
        case Unit.DAY:
            return dg.DailyPartitionsDefinition(start, end_date=end, timezone=cadence.tz)
        case Unit.WEEK:
            return dg.WeeklyPartitionsDefinition(
                start, end_date=end, timezone=cadence.tz, day_offset=1
            )
        case Unit.MONTH:
            return dg.MonthlyPartitionsDefinition(start, end_date=end, timezone=cadence.tz)
        case _:
            raise DeclarationError(
                found=f"cells of one {cadence.unit.value} can't be partitions of an asset",
                do="use Hourly, Daily, Weekly, Monthly or Whole",
            )


def cells_of(cadence: Cadence, keys: list[str]) -> IntervalSet:
    """Read partition keys as cells; the one cell of an unpartitioned asset for no key at all."""
    if cadence.unit is Unit.WHOLE:
        return IntervalSet.of([WHOLE_CELL])
    return IntervalSet.of(cadence.cell(key) for key in keys)


def keys_of_run(context: dg.AssetExecutionContext) -> list[str]:
    """Give the partition keys that a run names: none of a run without any, or of a range that ends before it starts."""
    partitioned = context.has_partition_key or context.has_partition_key_range
    return list(context.partition_keys) if partitioned else []


def key_of(cadence: Cadence, cell: Interval) -> str | None:
    """Name a cell's partition; None for an unpartitioned asset."""
    return None if cadence.unit is Unit.WHOLE else cadence.key(cell)


def _local(cadence: Cadence, instant: datetime) -> datetime:
    """Give an instant in local wall-clock time, as Dagster takes it beside the zone's name."""
    return instant.astimezone(zone_of(cadence.tz)).replace(tzinfo=None)
