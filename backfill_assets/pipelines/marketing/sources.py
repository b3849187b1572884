"""The marketing source: impressions, clicks and conversions of the ad networks, with their costs."""

from __future__ import annotations

from backfill_assets.intervals.cadence import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.source import Source, TimeColumns, WhenEmpty

FIRST_DAY = "2024-01-01"
"""The first day of ads."""

LAST_DAY = "2025-06-23"
"""The last of 540 days of ads."""

ad_events = Source(
    name="marketing.ad_events",
    path="sources/marketing/ad_events",
    description="One row per impression, click or conversion, reported up to three days late.",
    cadence=Daily(start=FIRST_DAY),
    times=TimeColumns(event="event_date", ingested="reported_at"),
    when_empty=WhenEmpty.WAIT,  # there are ads every day: no events means no report yet
    owner="team:ad-platform",
    columns=(
        Column("event_id", "bigint", nullable=False),
        Column("event_time", "timestamp", nullable=False),
        Column("event_date", "date", nullable=False, description="UTC day of event_time"),
        Column("reported_at", "timestamp", nullable=False),
        Column("campaign_id", "int", nullable=False),
        Column("channel", "string", nullable=False),
        Column("event_type", "string", nullable=False, description="impression, click, conversion"),
        Column("cost", "decimal(18,4)", nullable=False, description="dollars"),
        Column("conversion_value", "decimal(18,2)", description="dollars; conversions only"),
        Column("attribution", "string", description="of a conversion: how it came about"),
    ),
)

SOURCES = (ad_events,)
