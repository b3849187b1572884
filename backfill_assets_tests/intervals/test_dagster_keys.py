"""Our keys are Dagster's, letter for letter, on ordinary days and on those of a clock change."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
import pytest

from backfill_assets.intervals import Cadence, Daily, Hourly, Interval, Monthly, Weekly, Yearly
from backfill_assets.intervals.required import required

NOW = datetime(2024, 11, 20, tzinfo=UTC)
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Havana"]
START = datetime(2024, 1, 1)  # noqa: DTZ001 - Dagster reads it on the clocks of its zone
MAKERS = {
    "hourly": (Hourly, lambda zone: dg.HourlyPartitionsDefinition(START, timezone=zone)),
    "daily": (Daily, lambda zone: dg.DailyPartitionsDefinition(START, timezone=zone)),
    "weekly": (
        Weekly,
        lambda zone: dg.WeeklyPartitionsDefinition(START, timezone=zone, day_offset=1),
    ),
    "monthly": (Monthly, lambda zone: dg.MonthlyPartitionsDefinition(START, timezone=zone)),
    "yearly": (
        Yearly,
        lambda zone: dg.TimeWindowPartitionsDefinition(
            start=START, timezone=zone, cron_schedule="0 0 1 1 *", fmt="%Y-%m-%d"
        ),
    ),
}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("grain", MAKERS)
def test_required_cells_are_the_partitions_of_dagster(grain: str, zone: str):
    make, partitions = MAKERS[grain]
    cadence: Cadence = make(start="2024-01-01", tz=zone)
    theirs: dg.TimeWindowPartitionsDefinition = partitions(zone)
    windows = theirs.get_partition_keys(current_time=NOW)

    cells = list(cadence.cells(required(cadence, now=NOW)))

    assert [cadence.key(cell) for cell in cells] == windows
    for key, cell in list(zip(windows, cells, strict=True))[:: max(len(cells) // 400, 1)]:
        window = theirs.time_window_for_partition_key(key)
        assert Interval(window.start, window.end) == cell == cadence.cell(key)


@pytest.mark.parametrize(
    ("zone", "key"),
    [("Europe/Berlin", "2024-10-27-02:00+0100"), ("America/New_York", "2024-11-03-01:00-0500")],
)
def test_the_repeated_hour_is_the_same_window(zone: str, key: str):
    theirs = dg.HourlyPartitionsDefinition(START, timezone=zone)
    window = theirs.time_window_for_partition_key(key)

    assert Hourly(tz=zone).cell(key) == Interval(window.start, window.end)
