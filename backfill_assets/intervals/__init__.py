"""Intervals: spans of time, sets of them, and the cells that a model lives on."""

from __future__ import annotations

from backfill_assets.intervals.cadence import (
    WHOLE_CELL,
    Cadence,
    Daily,
    Hourly,
    Monthly,
    Weekly,
    Whole,
    Yearly,
)
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet

__all__ = [
    "WHOLE_CELL",
    "Cadence",
    "Daily",
    "Hourly",
    "Interval",
    "IntervalSet",
    "Monthly",
    "Unit",
    "Weekly",
    "Whole",
    "Yearly",
]
