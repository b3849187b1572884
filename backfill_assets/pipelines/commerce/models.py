"""The commerce models: from orders to the Jaffle Shop's margin, at the supply costs of each day."""

from __future__ import annotations

from backfill_assets.intervals.cadence import Daily, Monthly, Weekly, Whole
from backfill_assets.models.audit import (
    Reconciles,
    accepted_range,
    distinct_within,
    reconciles,
    references,
    row_count_within,
    row_rule,
    sql_audit,
)
from backfill_assets.models.kind import Full, IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.sql.sql_file import sql_file
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.pipelines.commerce import schemas
from backfill_assets.pipelines.commerce.sources import FIRST_DAY, LAST_DAY

_DAYS = Daily(start=FIRST_DAY, end=LAST_DAY)
_OWNER = "team:commerce-analytics"
_COSTS_NOT_NEGATIVE = row_rule("revenue_covers_cost", "revenue >= cost AND cost >= 0")
_MARGIN_OF_REVENUE = row_rule(
    "margin_is_of_revenue",
    "margin <=> CAST((revenue - cost) / NULLIF(revenue, 0) AS DECIMAL(9, 4))",
)
_CHANGES = 0.2
"""The share of the orders' feed that may be changes of orders."""
_PRODUCTS = 10
"""What is on the menu."""

orders = Model(
    name="commerce.orders",
    description="Every order once, in dollars, as last updated.",
    query=sql_file("orders.sql"),
    kind=IncrementalByUniqueKey(time_column="order_date", latest_by="updated_at"),
    cadence=_DAYS,
    upstreams=["commerce.raw_orders"],
    grain="one row per order",
    unique_key=["order_id"],
    columns=schemas.Orders,
    times=TimeColumns(event="ordered_at", updated="updated_at"),
    audits=[
        row_rule("total_is_subtotal_and_tax", "order_total = subtotal + tax_paid"),
        row_rule("date_is_of_the_order", "order_date = TO_DATE(ordered_at)"),
        row_rule("ordered_before_updated", "ordered_at <= updated_at"),
        # The feed holds a row per change of an order.
        reconciles("*", "commerce.raw_orders", "*", tolerance=_CHANGES),
        row_count_within(0.02, warn=True),
    ],
    late_window=3,
    batch_size=183,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "sales"},
)

fact_order_items = Model(
    name="commerce.fact_order_items",
    description="What was in each order, how many of it and for how much.",
    query=sql_file("fact_order_items.sql"),
    kind=IncrementalByUniqueKey(time_column="order_date"),
    cadence=_DAYS,
    upstreams=["commerce.raw_items", "commerce.orders", "commerce.raw_products"],
    grain="one row per order and item of the menu",
    unique_key=["order_id", "item_id"],
    columns=schemas.FactOrderItems,
    times=TimeColumns(event="order_date"),
    audits=[
        accepted_range("quantity", 0, None),
        row_rule("amount_is_quantity_times_price", "amount = quantity * unit_price"),
        reconciles("amount", "commerce.orders", "subtotal"),
        references("order_id", "commerce.orders", "order_id"),
        row_count_within(0.01, warn=True),
    ],
    late_window=3,
    batch_size=183,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "sales"},
)

cost_history = Model(
    name="commerce.cost_history",
    description="What a supply cost from when to when: join on the date of the fact.",
    query=sql_file("cost_history.sql"),
    kind=Full(),
    cadence=Whole(),
    upstreams=["commerce.raw_supply_prices"],
    grain="one row per supply, product and validity",
    unique_key=["supply_id", "sku", "effective_from"],
    columns=schemas.CostHistory,
    times=TimeColumns(effective="effective_from"),
    audits=[
        row_rule("ends_after_it_starts", "effective_to > effective_from"),
        sql_audit(
            "a_price_ends_where_the_next_begins",
            """SELECT * FROM {rows} QUALIFY NOT effective_to <=>
               LEAD(effective_from) OVER (PARTITION BY supply_id, sku ORDER BY effective_from)""",
        ),
        distinct_within("sku", _PRODUCTS, _PRODUCTS),
    ],
    owner=_OWNER,
    tags={"domain": "cost"},
)

fact_orders = Model(
    name="commerce.fact_orders",
    description="Revenue, cost on the order date and margin of every order.",
    query=sql_file("fact_orders.sql"),
    kind=IncrementalByTimeRange(time_column="order_date"),
    cadence=_DAYS,
    upstreams=[
        "commerce.orders",
        "commerce.fact_order_items",
        Upstream("commerce.cost_history", reopens=Reopens.ALL),
    ],
    grain="one row per order",
    unique_key=["order_id"],
    columns=schemas.FactOrders,
    times=TimeColumns(event="order_date"),
    audits=[
        _COSTS_NOT_NEGATIVE,
        _MARGIN_OF_REVENUE,
        accepted_range("margin", 0, 1.5),
        reconciles("*", "commerce.orders", "*"),
        reconciles("revenue", "commerce.orders", "subtotal"),
        Reconciles("items_add_up", "revenue", "commerce.fact_order_items", "amount"),
    ],
    late_window=3,
    batch_size=183,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "margin"},
)

gross_margin_daily = Model(
    name="commerce.gross_margin_daily",
    description="Gross margin of each store, day by day.",
    query=sql_file("gross_margin_daily.sql"),
    kind=IncrementalByTimeRange(time_column="order_date"),
    cadence=_DAYS,
    upstreams=["commerce.fact_orders"],
    grain="one row per day and store",
    unique_key=["order_date", "store_id"],
    columns=schemas.GrossMarginDaily,
    times=TimeColumns(event="order_date"),
    audits=[
        _COSTS_NOT_NEGATIVE,
        _MARGIN_OF_REVENUE,
        row_rule("gross_margin_is_revenue_less_cost", "gross_margin = revenue - cost"),
        accepted_range("margin", 0, 1.5),
        reconciles("orders", "commerce.fact_orders", "*"),
        reconciles("revenue", "commerce.fact_orders"),
        reconciles("cost", "commerce.fact_orders"),
    ],
    late_window=3,
    batch_size=183,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "margin"},
)

revenue_weekly = Model(
    name="commerce.revenue_weekly",
    description="Revenue of each store by week from Monday; only whole weeks.",
    query=sql_file("revenue_weekly.sql"),
    kind=IncrementalByTimeRange(time_column="week_start"),
    cadence=Weekly(start="2018-09-03", end="2019-08-25"),
    upstreams=["commerce.gross_margin_daily"],
    grain="one row per week and store",
    unique_key=["week_start", "store_id"],
    columns=schemas.RevenueWeekly,
    times=TimeColumns(event="week_start"),
    audits=[
        row_rule("starts_on_monday", "WEEKDAY(week_start) = 0"),
        reconciles("orders", "commerce.gross_margin_daily"),
        reconciles("revenue", "commerce.gross_margin_daily"),
    ],
    late_window=1,  # the last days of a period come after its end
    owner=_OWNER,
    tags={"domain": "sales"},
)

revenue_monthly = Model(
    name="commerce.revenue_monthly",
    description="Revenue of each store by calendar month.",
    query=sql_file("revenue_monthly.sql"),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start=FIRST_DAY, end=LAST_DAY),
    upstreams=["commerce.gross_margin_daily"],
    grain="one row per month and store",
    unique_key=["month_start", "store_id"],
    columns=schemas.RevenueMonthly,
    times=TimeColumns(event="month_start"),
    audits=[
        row_rule("starts_on_the_first", "DAY(month_start) = 1"),
        reconciles("orders", "commerce.gross_margin_daily"),
        reconciles("revenue", "commerce.gross_margin_daily"),
    ],
    late_window=1,  # the last days of a period come after its end
    owner=_OWNER,
    tags={"domain": "sales"},
)

MODELS = (
    orders,
    fact_order_items,
    cost_history,
    fact_orders,
    gross_margin_daily,
    revenue_weekly,
    revenue_monthly,
)
