"""The gross margin of each order, at the costs that were valid on the day of the order."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Monthly,
    Reopens,
    Source,
    SqlQuery,
    TimeColumns,
    Upstream,
    Whole,
    accepted_range,
    row_rule,
    unique,
)

orders = Source(
    name="shop.orders",
    path="sources/orders",
    cadence=Daily(start="2024-01-01", end="2024-03-31"),
    columns=[
        Column("order_id", "bigint"),
        Column("item_id", "string"),
        Column("revenue", "decimal(18,2)"),
        Column("ordered_on", "date"),
    ],
    times=TimeColumns(event="ordered_on"),
)

costs = Source(
    name="shop.costs",
    path="sources/costs",
    cadence=Whole(),
    columns=[
        Column("item_id", "string"),
        Column("cost", "decimal(18,2)"),
        Column("effective_from", "date"),
        Column("effective_to", "date"),
    ],
    times=TimeColumns(effective="effective_from"),
)

gross_margin = Model(
    name="shop.gross_margin",
    query=SqlQuery("""
        SELECT
          sold.order_id,
          sold.ordered_on,
          sold.revenue,
          valid.cost,
          CAST((sold.revenue - valid.cost) / sold.revenue AS DECIMAL(9, 4)) AS margin
        FROM shop.orders AS sold
        JOIN shop.costs AS valid
          ON valid.item_id = sold.item_id
          AND sold.ordered_on >= valid.effective_from
          AND (valid.effective_to IS NULL OR sold.ordered_on < valid.effective_to)
        WHERE sold.ordered_on >= :start_ds AND sold.ordered_on < :end_ds
    """),
    kind=IncrementalByTimeRange(time_column="ordered_on"),
    cadence=Monthly(start="2024-01-01", end="2024-03-31"),
    upstreams=["shop.orders", Upstream("shop.costs", reopens=Reopens.ALL)],
    grain="one row per order",
    unique_key=["order_id"],
    columns=[
        Column("order_id", "bigint"),
        Column("ordered_on", "date"),
        Column("revenue", "decimal(18,2)"),
        Column("cost", "decimal(18,2)"),
        Column("margin", "decimal(9,4)"),
    ],
    times=TimeColumns(event="ordered_on"),
    audits=[
        unique("order_id"),
        row_rule("revenue_covers_cost", "revenue >= cost AND cost >= 0"),
        accepted_range("margin", 0, 1.5),
    ],
    batch_size=1,
    owner="team:finance",
)

MODELS, SOURCES = [gross_margin], [orders, costs]
