"""Revenue by day and region, and by month and region."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Monthly,
    Source,
    SqlQuery,
    TimeColumns,
    accepted_range,
    reconciles,
)

DAYS = Daily(start="2024-01-01", end="2024-05-31")

sales = Source(
    name="shop.sales",
    path="sources/sales",
    cadence=DAYS,
    columns=[
        Column("sale_id", "bigint"),
        Column("region", "string"),
        Column("amount", "bigint"),
        Column("shipping", "bigint"),
        Column("refunded", "boolean"),
        Column("sold_on", "date"),
    ],
    times=TimeColumns(event="sold_on"),
)

daily_revenue = Model(
    name="shop.daily_revenue",
    query=SqlQuery("""
        SELECT sold_on, region, SUM(amount) AS revenue
        FROM shop.sales
        WHERE sold_on >= :start_ds AND sold_on < :end_ds
          AND NOT refunded
        GROUP BY sold_on, region
    """),
    kind=IncrementalByTimeRange(time_column="sold_on"),
    cadence=DAYS,
    upstreams=["shop.sales"],
    grain="one row per day and region",
    unique_key=["sold_on", "region"],
    columns=[Column("sold_on", "date"), Column("region", "string"), Column("revenue", "bigint")],
    audits=[accepted_range("revenue", 0, None)],
    owner="team:finance",
)

monthly_revenue = Model(
    name="shop.monthly_revenue",
    query=SqlQuery("""
        SELECT CAST(DATE_TRUNC('MONTH', sold_on) AS DATE) AS month_start, region, SUM(revenue) AS revenue
        FROM shop.daily_revenue
        WHERE sold_on >= :start_ds AND sold_on < :end_ds
        GROUP BY 1, 2
    """),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start="2024-01-01", end="2024-05-31"),
    upstreams=["shop.daily_revenue"],
    grain="one row per month and region",
    unique_key=["month_start", "region"],
    columns=[
        Column("month_start", "date"),
        Column("region", "string"),
        Column("revenue", "bigint"),
    ],
    audits=[reconciles("revenue", "shop.daily_revenue")],
    owner="team:finance",
)

MODELS, SOURCES = [daily_revenue, monthly_revenue], [sales]
