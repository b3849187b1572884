"""Monthly active customers; a board report reads three months of them."""

from backfill_assets import (
    Column,
    Consumer,
    Daily,
    IncrementalByTimeRange,
    Model,
    Monthly,
    Reading,
    Source,
    SqlQuery,
    TimeColumns,
    accepted_range,
)

visits = Source(
    name="shop.visits",
    path="sources/visits",
    cadence=Daily(start="2024-01-01", end="2024-06-30"),
    columns=[
        Column("customer_id", "string"),
        Column("ordered", "boolean"),
        Column("visited_on", "date"),
    ],
    times=TimeColumns(event="visited_on"),
)

active_customers = Model(
    name="shop.active_customers",
    query=SqlQuery("""
        SELECT
          CAST(DATE_TRUNC('MONTH', visited_on) AS DATE) AS month_start,
          COUNT(DISTINCT customer_id) AS active
        FROM shop.visits
        WHERE visited_on >= :start_ds AND visited_on < :end_ds
        GROUP BY 1
    """),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start="2024-01-01", end="2024-06-30"),
    upstreams=["shop.visits"],
    grain="one row per month",
    unique_key=["month_start"],
    columns=[Column("month_start", "date"), Column("active", "bigint")],
    audits=[accepted_range("active", 0, None)],
    owner="team:growth",
)

MODELS, SOURCES = [active_customers], [visits]
CONSUMERS = [
    Consumer(
        name="board report",
        kind="notebook",
        owner="team:growth",
        reads=[Reading("shop.active_customers", days_back=90)],
    )
]
