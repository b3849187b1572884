"""Payments in euros; a dashboard reads them."""

from backfill_assets import (
    Column,
    Consumer,
    Daily,
    IncrementalByTimeRange,
    Model,
    Reading,
    Source,
    SqlQuery,
    TimeColumns,
    row_count_within,
    row_rule,
)

DAYS = Daily(start="2024-05-01", end="2024-05-10")

charges = Source(
    name="shop.charges",
    path="sources/charges",
    cadence=DAYS,
    columns=[
        Column("payment_id", "bigint"),
        Column("customer_id", "string"),
        Column("minor_units", "bigint"),
        Column("unit", "string"),
        Column("paid_on", "date"),
    ],
    times=TimeColumns(event="paid_on"),
)

payments = Model(
    name="shop.payments",
    query=SqlQuery("""
        SELECT
          payment_id,
          customer_id,
          CAST(minor_units / 100 AS DECIMAL(18, 2)) AS amount,
          unit,
          paid_on
        FROM shop.charges
        WHERE paid_on >= :start_ds AND paid_on < :end_ds
    """),
    kind=IncrementalByTimeRange(time_column="paid_on"),
    cadence=DAYS,
    upstreams=["shop.charges"],
    grain="one row per payment",
    unique_key=["payment_id"],
    columns=[
        Column("payment_id", "bigint"),
        Column("customer_id", "string"),
        Column("amount", "decimal(18,2)"),
        Column("unit", "string"),
        Column("paid_on", "date"),
    ],
    audits=[row_rule("amount_is_positive", "amount > 0"), row_count_within(0.0)],
    owner="team:finance",
)

MODELS, SOURCES = [payments], [charges]
CONSUMERS = [
    Consumer(
        name="payments dashboard",
        kind="dashboard",
        owner="team:finance",
        reads=[Reading("shop.payments", columns=["paid_on", "amount"])],
    )
]
