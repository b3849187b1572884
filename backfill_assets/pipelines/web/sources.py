"""The web source: one row per page view of the collector, sometimes repeated, sometimes late."""

from __future__ import annotations

from backfill_assets.intervals.cadence import Hourly
from backfill_assets.models.column import Column
from backfill_assets.models.source import Source, TimeColumns, WhenEmpty

FIRST_DAY = "2025-05-01"
"""The first day of page views."""

LAST_DAY = "2025-06-14"
"""The last of 45 days of page views."""

raw_events = Source(
    name="web.raw_events",
    path="sources/web/raw_events",
    description="One row per delivery of a page view; a view may be delivered again, later.",
    cadence=Hourly(start=FIRST_DAY),
    times=TimeColumns(event="event_time", ingested="ingested_at"),
    when_empty=WhenEmpty.ACCEPT,  # an hour without visitors is an ordinary hour
    owner="team:web-platform",
    columns=(
        Column("event_id", "string", nullable=False),
        Column("event_time", "timestamp", nullable=False),
        Column("event_date", "date", nullable=False, description="UTC day of event_time"),
        Column("user_id", "string", nullable=False),
        Column("page", "string", nullable=False),
        Column("ingested_at", "timestamp", nullable=False),
    ),
)

SOURCES = (raw_events,)
