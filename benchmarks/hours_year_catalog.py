"""The catalog of the hourly year: one model of 8,760 hours, over a source with a few rows in each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backfill_assets.intervals.cadence import Hourly
from benchmarks.hours_catalog import FIRST, hours as _hours, seen as _seen

HOURS = 365 * 24
_LIFE = Hourly(start=FIRST, end=FIRST + timedelta(hours=HOURS))

seen = replace(_seen, path="sources/bench/seen_all_year", cadence=_LIFE)
hours = replace(_hours, cadence=_LIFE, batch_size=30 * 24, batch_concurrency=2)

MODELS, SOURCES = (hours,), (seen,)
