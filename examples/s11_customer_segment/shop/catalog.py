"""The segment of each customer, day by day."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    accepted_values,
)

DAYS = Daily(start="2024-01-01", end="2024-06-30")

spending = Source(
    name="shop.spending",
    path="sources/spending",
    cadence=DAYS,
    columns=[
        Column("customer_id", "string"),
        Column("spent", "bigint"),
        Column("orders", "bigint"),
        Column("seen_on", "date"),
    ],
    times=TimeColumns(event="seen_on"),
)

customer_segment = Model(
    name="shop.customer_segment",
    query=SqlQuery("""
        SELECT
          seen_on,
          customer_id,
          CASE WHEN spent >= 500 THEN 'gold' WHEN spent >= 100 THEN 'silver' ELSE 'new' END AS segment
        FROM shop.spending
        WHERE seen_on >= :start_ds AND seen_on < :end_ds
    """),
    kind=IncrementalByTimeRange(time_column="seen_on"),
    cadence=DAYS,
    upstreams=["shop.spending"],
    grain="one row per day and customer",
    unique_key=["seen_on", "customer_id"],
    columns=[
        Column("seen_on", "date"),
        Column("customer_id", "string"),
        Column("segment", "string"),
    ],
    audits=[accepted_values("segment", ("new", "silver", "gold"))],
    batch_size=61,
    batch_concurrency=2,
    owner="team:crm",
)

MODELS, SOURCES = [customer_segment], [spending]
