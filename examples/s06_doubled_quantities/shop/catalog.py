"""What was in each order, from the lines that the tills send."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    accepted_range,
    reconciles,
    row_count_within,
)

DAYS = Daily(start="2024-03-04", end="2024-03-17")

lines = Source(
    name="shop.lines",
    path="sources/lines",
    cadence=DAYS,
    columns=[
        Column("order_id", "bigint"),
        Column("item_id", "string"),
        Column("quantity", "bigint"),
        Column("ordered_on", "date"),
    ],
    times=TimeColumns(event="ordered_on"),
)

till_totals = Source(
    name="shop.till_totals",
    path="sources/till_totals",
    cadence=DAYS,
    columns=[Column("closed_on", "date"), Column("pieces", "bigint")],
    times=TimeColumns(event="closed_on"),
)

fact_order_items = Model(
    name="shop.fact_order_items",
    query=SqlQuery("""
        SELECT ordered_on, order_id, item_id, SUM(quantity) AS quantity
        FROM shop.lines
        WHERE ordered_on >= :start_ds AND ordered_on < :end_ds
        GROUP BY ordered_on, order_id, item_id
    """),
    kind=IncrementalByTimeRange(time_column="ordered_on"),
    cadence=DAYS,
    upstreams=["shop.lines", "shop.till_totals"],
    grain="one row per order and item",
    unique_key=["order_id", "item_id"],
    columns=[
        Column("ordered_on", "date"),
        Column("order_id", "bigint"),
        Column("item_id", "string"),
        Column("quantity", "bigint"),
    ],
    audits=[
        accepted_range("quantity", 0, None),
        row_count_within(0.01),
        # What the tills counted at closing time, within 1%.
        reconciles("quantity", "shop.till_totals", "pieces", tolerance=0.01, warn=True),
    ],
    owner="team:shop",
)

pieces_daily = Model(
    name="shop.pieces_daily",
    query=SqlQuery("""
        SELECT ordered_on, SUM(quantity) AS pieces
        FROM shop.fact_order_items
        WHERE ordered_on >= :start_ds AND ordered_on < :end_ds
        GROUP BY ordered_on
    """),
    kind=IncrementalByTimeRange(time_column="ordered_on"),
    cadence=DAYS,
    upstreams=["shop.fact_order_items"],
    grain="one row per day with orders",
    unique_key=["ordered_on"],
    columns=[Column("ordered_on", "date"), Column("pieces", "bigint")],
    owner="team:shop",
)

MODELS, SOURCES = [fact_order_items, pieces_daily], [lines, till_totals]
