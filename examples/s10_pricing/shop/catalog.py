"""Revenue by day, from what was sold and at which discount; and by week."""

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
    Weekly,
    accepted_range,
    reconciles,
)

DAYS = Daily(start="2024-01-01", end="2024-03-30")

sales = Source(
    name="shop.sales",
    path="sources/sales",
    cadence=DAYS,
    columns=[
        Column("sale_id", "bigint"),
        Column("list_price", "bigint"),
        Column("discount_percent", "bigint"),
        Column("coupon", "bigint"),
        Column("sold_on", "date"),
    ],
    times=TimeColumns(event="sold_on"),
)

revenue = Model(
    name="shop.revenue",
    query=SqlQuery("""
        SELECT
          sold_on,
          COUNT(*) AS sales,
          CAST(SUM(list_price * (100 - discount_percent) DIV 100 - coupon) AS BIGINT) AS revenue
        FROM shop.sales
        WHERE sold_on >= :start_ds AND sold_on < :end_ds
        GROUP BY sold_on
    """),
    kind=IncrementalByTimeRange(time_column="sold_on"),
    cadence=DAYS,
    upstreams=["shop.sales"],
    grain="one row per day with sales",
    unique_key=["sold_on"],
    columns=[Column("sold_on", "date"), Column("sales", "bigint"), Column("revenue", "bigint")],
    audits=[accepted_range("revenue", 0, None), reconciles("sales", "shop.sales", "*")],
    batch_size=30,
    batch_concurrency=2,
    owner="team:finance",
)

revenue_weekly = Model(
    name="shop.revenue_weekly",
    query=SqlQuery("""
        SELECT CAST(DATE_TRUNC('WEEK', sold_on) AS DATE) AS week_start, SUM(revenue) AS revenue
        FROM shop.revenue
        WHERE sold_on >= :start_ds AND sold_on < :end_ds
        GROUP BY 1
    """),
    kind=IncrementalByTimeRange(time_column="week_start"),
    cadence=Weekly(start="2024-01-01", end="2024-03-24"),
    upstreams=["shop.revenue"],
    grain="one row per week",
    unique_key=["week_start"],
    columns=[Column("week_start", "date"), Column("revenue", "bigint")],
    audits=[reconciles("revenue", "shop.revenue")],
    owner="team:finance",
)

sales_weekly = Model(
    name="shop.sales_weekly",
    query=SqlQuery("""
        SELECT CAST(DATE_TRUNC('WEEK', sold_on) AS DATE) AS week_start, SUM(sales) AS sales
        FROM shop.revenue
        WHERE sold_on >= :start_ds AND sold_on < :end_ds
        GROUP BY 1
    """),
    kind=IncrementalByTimeRange(time_column="week_start"),
    cadence=Weekly(start="2024-01-01", end="2024-03-24"),
    upstreams=["shop.revenue"],
    grain="one row per week",
    unique_key=["week_start"],
    columns=[Column("week_start", "date"), Column("sales", "bigint")],
    owner="team:finance",
)

MODELS, SOURCES = [revenue, revenue_weekly, sales_weekly], [sales]
