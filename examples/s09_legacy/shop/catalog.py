"""Orders by day, as an older system has kept them in a table of its own."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    accepted_range,
)

DAYS = Daily(start="2024-04-01", end="2024-05-30")

orders = Source(
    name="shop.orders",
    path="sources/orders",
    cadence=DAYS,
    columns=[
        Column("order_id", "bigint"),
        Column("amount", "bigint"),
        Column("is_test", "boolean"),
        Column("ordered_on", "date"),
    ],
    times=TimeColumns(event="ordered_on"),
)

orders_daily = Model(
    name="shop.orders_daily",
    query=SqlQuery("""
        SELECT ordered_on, COUNT(*) AS orders, SUM(amount) AS revenue
        FROM shop.orders
        WHERE ordered_on >= :start_ds AND ordered_on < :end_ds AND NOT is_test
        GROUP BY ordered_on
    """),
    kind=IncrementalByTimeRange(time_column="ordered_on"),
    cadence=DAYS,
    upstreams=["shop.orders"],
    grain="one row per day with orders",
    unique_key=["ordered_on"],
    columns=[Column("ordered_on", "date"), Column("orders", "bigint"), Column("revenue", "bigint")],
    audits=[accepted_range("revenue", 0, None)],
    owner="team:shop",
)

MODELS, SOURCES = [orders_daily], [orders]
