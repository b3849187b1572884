"""Page views, merged by their id: a view may be delivered again, later."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByUniqueKey,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    not_null,
    row_count_within,
    unique,
)

DAYS = Daily(start="2024-06-03", end="2024-06-09")

views = Source(
    name="web.views",
    path="sources/views",
    cadence=DAYS,
    columns=[
        Column("event_id", "string"),
        Column("session_id", "string"),
        Column("event_time", "timestamp"),
        Column("event_date", "date"),
        Column("load_ms", "bigint"),
        Column("ingested_at", "timestamp"),
    ],
    times=TimeColumns(event="event_date", ingested="ingested_at"),
)

events = Model(
    name="web.events",
    query=SqlQuery("""
        SELECT
          event_id,
          session_id,
          event_time,
          event_date,
          load_ms,
          ingested_at
        FROM web.views
        WHERE event_date >= :start_ds AND event_date < :end_ds
    """),
    kind=IncrementalByUniqueKey(time_column="event_date", latest_by="ingested_at"),
    cadence=DAYS,
    upstreams=["web.views"],
    grain="one row per page view",
    unique_key=["event_id"],
    columns=[
        Column("event_id", "string"),
        Column("session_id", "string"),
        Column("event_time", "timestamp"),
        Column("event_date", "date"),
        Column("load_ms", "bigint"),
        Column("ingested_at", "timestamp"),
    ],
    times=TimeColumns(event="event_time", ingested="ingested_at"),
    audits=[unique("event_id"), not_null("event_time"), row_count_within(0.02)],
    batch_size=1,
    batch_concurrency=2,
    owner="team:web",
)

MODELS, SOURCES = [events], [views]
