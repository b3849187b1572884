"""The web models: from page views by the hour to sessions by the day."""

from __future__ import annotations

from backfill_assets.intervals.cadence import Daily, Hourly
from backfill_assets.models.audit import reconciles, row_count_within, row_rule, trend_within
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.sql.sql_file import sql_file
from backfill_assets.models.upstream import Upstream
from backfill_assets.pipelines.web import schemas
from backfill_assets.pipelines.web.sessions import LOOKBACK_HOURS, sessions as find_sessions
from backfill_assets.pipelines.web.sources import FIRST_DAY, LAST_DAY

_OWNER = "team:web-analytics"
_REPEATED = 0.2
"""The share of an hour's deliveries that may be repetitions."""

events = Model(
    name="web.events",
    description="Every page view once.",
    query=sql_file("events.sql"),
    kind=IncrementalByUniqueKey(time_column="event_time", latest_by="ingested_at"),
    cadence=Hourly(start=FIRST_DAY, end=LAST_DAY),
    upstreams=["web.raw_events"],
    grain="one row per page view",
    unique_key=["event_id"],
    columns=schemas.Events,
    times=TimeColumns(event="event_time", ingested="ingested_at"),
    audits=[
        row_rule("date_is_of_the_event", "event_date = TO_DATE(event_time)"),
        row_rule("seen_before_ingested", "event_time <= ingested_at"),
        # A view may be delivered more than once.
        reconciles("*", "web.raw_events", "*", tolerance=_REPEATED),
        row_count_within(0.02, warn=True),
    ],
    late_window=24,
    batch_size=23 * 24,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "behaviour"},
)

sessions = Model(
    name="web.sessions",
    description="Visits: page views of a user without thirty minutes of silence.",
    query=find_sessions,
    kind=IncrementalByTimeRange(time_column="session_date"),
    cadence=Daily(start=FIRST_DAY, end=LAST_DAY),
    upstreams=[Upstream("web.events", lookback=LOOKBACK_HOURS)],
    grain="one row per session",
    unique_key=["session_id"],
    columns=schemas.Sessions,
    times=TimeColumns(event="ended_at", created="closed_at"),
    audits=[
        row_rule("ends_after_it_starts", "started_at <= ended_at AND ended_at < closed_at"),
        row_rule("shorter_than_two_days", "closed_at - started_at <= INTERVAL 48 HOURS"),
        row_rule(
            "day_is_of_its_close", "session_date = TO_DATE(closed_at - INTERVAL 1 MICROSECOND)"
        ),
        row_rule("closed_by_silence_or_midnight", "closed_at <= ended_at + INTERVAL 30 MINUTES"),
        row_rule("named_after_its_start", "session_id = user_id || '-' || UNIX_MICROS(started_at)"),
        row_rule("views_cover_pages", "pages <= page_views"),
        trend_within("*"),
        trend_within("page_views"),
    ],
    late_window=2,
    batch_size=23,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "behaviour"},
)

MODELS = (events, sessions)
