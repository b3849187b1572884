"""Orders by day: three days to a batch, two batches at once."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    WhenEmpty,
    build_definitions,
    reconciles,
    row_rule,
)

raw_orders = Source(
    name="shop.raw_orders",
    path="sources/raw_orders",
    cadence=Daily(start="2024-04-01", end="2024-05-10"),
    columns=[
        Column("order_id", "bigint"),
        Column("amount", "bigint"),
        Column("ordered_on", "date"),
    ],
    times=TimeColumns(event="ordered_on"),
    when_empty=WhenEmpty.WAIT,  # the shop is open every day: no orders means no feed yet
)

orders = Model(
    name="shop.orders",
    query=SqlQuery("""
        SELECT order_id, ordered_on, amount
        FROM shop.raw_orders
        WHERE ordered_on >= :start_ds AND ordered_on < :end_ds
    """),
    kind=IncrementalByTimeRange(time_column="ordered_on"),
    cadence=Daily(start="2024-04-01", end="2024-05-10"),
    upstreams=["shop.raw_orders"],
    grain="one row per order",
    unique_key=["order_id"],
    columns=[
        Column("order_id", "bigint"),
        Column("ordered_on", "date"),
        Column("amount", "bigint"),
    ],
    audits=[
        row_rule("amount_is_positive", "amount > 0"),
        reconciles("amount", "shop.raw_orders"),
    ],
    batch_size=3,
    batch_concurrency=2,
    owner="team:shop",
)

MODELS, SOURCES = [orders], [raw_orders]
defs = build_definitions(models=MODELS, sources=SOURCES)
