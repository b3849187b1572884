"""Revenue by day, and by week."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    Weekly,
    reconciles,
)

raw_orders = Source(
    name="shop.raw_orders",
    path="sources/raw_orders",
    cadence=Daily(start="2024-03-04"),
    columns=[Column("ordered_on", "date"), Column("amount", "bigint")],
    times=TimeColumns(event="ordered_on"),
)

revenue = Model(
    name="shop.revenue",
    query=SqlQuery("""
        SELECT ordered_on, SUM(amount) AS amount
        FROM shop.raw_orders
        WHERE ordered_on >= :start_ds AND ordered_on < :end_ds
        GROUP BY ordered_on
    """),
    kind=IncrementalByTimeRange(time_column="ordered_on"),
    cadence=Daily(start="2024-03-04", end="2024-03-17"),
    upstreams=["shop.raw_orders"],
    grain="one row per day with orders",
    unique_key=["ordered_on"],
    columns=[Column("ordered_on", "date"), Column("amount", "bigint")],
    audits=[reconciles("amount", "shop.raw_orders")],
    batch_size=7,
    owner="team:shop",
)

revenue_weekly = Model(
    name="shop.revenue_weekly",
    query=SqlQuery("""
        SELECT CAST(DATE_TRUNC('WEEK', ordered_on) AS DATE) AS week_start, SUM(amount) AS amount
        FROM shop.revenue
        WHERE ordered_on >= :start_ds AND ordered_on < :end_ds
        GROUP BY 1
    """),
    kind=IncrementalByTimeRange(time_column="week_start"),
    cadence=Weekly(start="2024-03-04", end="2024-03-17"),
    upstreams=["shop.revenue"],
    grain="one row per week",
    unique_key=["week_start"],
    columns=[Column("week_start", "date"), Column("amount", "bigint")],
    owner="team:shop",
)

MODELS, SOURCES = [revenue, revenue_weekly], [raw_orders]
