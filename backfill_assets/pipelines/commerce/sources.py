"""The commerce sources: the Jaffle Shop's orders and items by day, and its short tables as a whole.

Amounts are whole cents, as the shop writes them; the models turn them into decimals. A source is
cut by the UTC day of its `ordered_at`, which is also how its table is partitioned.
"""

from __future__ import annotations

from backfill_assets.intervals.cadence import Daily, Whole
from backfill_assets.models.column import Column
from backfill_assets.models.source import Source, TimeColumns, WhenEmpty

FIRST_DAY = "2018-09-01"
"""The first day of jafgen's history: the shop opens in Philadelphia."""

LAST_DAY = "2019-08-31"
"""The last day of the one year that is landed."""

_OWNER = "team:shop-systems"

raw_orders = Source(
    name="commerce.raw_orders",
    path="sources/commerce/raw_orders",
    description="One row per order and change of it; the latest `updated_at` is the order.",
    cadence=Daily(start=FIRST_DAY),
    times=TimeColumns(event="order_date", updated="updated_at", ingested="ingested_at"),
    when_empty=WhenEmpty.WAIT,  # the shop is open every day: no orders means no feed yet
    owner=_OWNER,
    columns=(
        Column("id", "string", nullable=False),
        Column("customer", "string", nullable=False),
        Column("store_id", "string", nullable=False),
        Column("subtotal", "bigint", nullable=False, description="cents, before tax"),
        Column("tax_paid", "bigint", nullable=False, description="cents"),
        Column("order_total", "bigint", nullable=False, description="cents"),
        Column("ordered_at", "timestamp", nullable=False),
        Column("order_date", "date", nullable=False, description="UTC day of ordered_at"),
        Column("updated_at", "timestamp", nullable=False),
        Column("ingested_at", "timestamp", nullable=False),
    ),
)

raw_items = Source(
    name="commerce.raw_items",
    path="sources/commerce/raw_items",
    description="One row per piece sold; it carries its order's time, as a change feed would.",
    cadence=Daily(start=FIRST_DAY),
    times=TimeColumns(event="order_date", ingested="ingested_at"),
    when_empty=WhenEmpty.WAIT,
    owner=_OWNER,
    columns=(
        Column("id", "string", nullable=False),
        Column("order_id", "string", nullable=False),
        Column("sku", "string", nullable=False),
        Column("ordered_at", "timestamp", nullable=False, description="of its order"),
        Column("order_date", "date", nullable=False, description="UTC day of ordered_at"),
        Column("ingested_at", "timestamp", nullable=False),
    ),
)

raw_supply_prices = Source(
    name="commerce.raw_supply_prices",
    path="sources/commerce/raw_supply_prices",
    description="Every price that a supply of a product ever had, from the day it took effect.",
    cadence=Whole(),
    times=TimeColumns(effective="effective_from", created="recorded_at"),
    when_empty=WhenEmpty.FAIL,
    owner=_OWNER,
    columns=(
        Column("supply_id", "string", nullable=False),
        Column("sku", "string", nullable=False),
        Column("cost", "decimal(18,4)", nullable=False, description="dollars per piece sold"),
        Column("effective_from", "date", nullable=False),
        Column("recorded_at", "timestamp", nullable=False),
    ),
)

raw_products = Source(
    name="commerce.raw_products",
    path="sources/commerce/raw_products",
    description="The menu.",
    cadence=Whole(),
    when_empty=WhenEmpty.FAIL,
    owner=_OWNER,
    columns=(
        Column("sku", "string", nullable=False),
        Column("name", "string", nullable=False),
        Column("type", "string", nullable=False),
        Column("price", "bigint", nullable=False, description="cents"),
    ),
)

raw_stores = Source(
    name="commerce.raw_stores",
    path="sources/commerce/raw_stores",
    description="The shops, one per city.",
    cadence=Whole(),
    when_empty=WhenEmpty.FAIL,
    owner=_OWNER,
    columns=(
        Column("id", "string", nullable=False),
        Column("name", "string", nullable=False, description="its city"),
        Column("opened_at", "timestamp", nullable=False),
        Column("tax_rate", "double", nullable=False),
    ),
)

raw_customers = Source(
    name="commerce.raw_customers",
    path="sources/commerce/raw_customers",
    description="Everybody who has ever ordered.",
    cadence=Whole(),
    when_empty=WhenEmpty.FAIL,
    owner=_OWNER,
    columns=(
        Column("id", "string", nullable=False),
        Column("name", "string", nullable=False),
    ),
)

raw_supplies = Source(
    name="commerce.raw_supplies",
    path="sources/commerce/raw_supplies",
    description="What goes into each product, at today's cost only: history is in supply prices.",
    cadence=Whole(),
    when_empty=WhenEmpty.FAIL,
    owner=_OWNER,
    columns=(
        Column("id", "string", nullable=False),
        Column("name", "string", nullable=False),
        Column("cost", "bigint", nullable=False, description="cents"),
        Column("sku", "string", nullable=False),
    ),
)

SOURCES = (
    raw_orders,
    raw_items,
    raw_supply_prices,
    raw_products,
    raw_stores,
    raw_customers,
    raw_supplies,
)
