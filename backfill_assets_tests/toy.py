"""A tiny shop: a few rows in four sources, and models of every grain; what the write path fills.

Everything lies in fixed days, so nothing depends on the clock: sales and returns from 28 January to
3 February 2024 (none on the 30th: that cell is empty), clicks on the first day. A negative amount in
a source fails a blocking audit of the model that reads it, one above 1,000 only a warning.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets import (
    Column,
    Daily,
    Full,
    Hourly,
    IncrementalByTimeRange,
    Model,
    Monthly,
    Source,
    SqlQuery,
    TimeColumns,
    Upstream,
    Whole,
    accepted_range,
    own_cells,
    row_rule,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FIRST, LAST = "2024-01-28", "2024-02-03"
DAYS = ("2024-01-28", "2024-01-29", "2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02", LAST)
EMPTY_DAY = "2024-01-30"
MONTHS = ("2024-01-01", "2024-02-01")

_SALES = Daily(start=FIRST, end=LAST)
_SALE = (Column("ds", "date"), Column("shop", "string"), Column("amount", "decimal(18,2)"))

raw_sales = Source(
    name="toy.raw_sales",
    path="sources/raw_sales",
    cadence=Daily(start=FIRST),
    columns=_SALE,
    times=TimeColumns(event="ds"),
    owner="team:toy",
)
raw_returns = Source(
    name="toy.raw_returns",
    path="sources/raw_returns",
    cadence=Daily(start=FIRST),
    columns=_SALE,
    times=TimeColumns(event="ds"),
    owner="team:toy",
)
raw_clicks = Source(
    name="toy.raw_clicks",
    path="sources/raw_clicks",
    cadence=Hourly(start=FIRST),
    columns=(Column("click_id", "bigint"), Column("clicked_at", "timestamp")),
    times=TimeColumns(event="clicked_at"),
    owner="team:toy",
)
raw_shops = Source(
    name="toy.raw_shops",
    path="sources/raw_shops",
    cadence=Whole(),
    columns=(Column("shop", "string"), Column("city", "string")),
    owner="team:toy",
)

_AUDITS = (
    row_rule("amount_not_negative", "amount >= 0"),
    row_rule("amount_is_usual", "amount <= 1000", warn=True),
)

sales = Model(
    name="toy.sales",
    description="What each shop sold, per day.",
    query=SqlQuery(
        "SELECT ds, shop, CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount FROM toy.raw_sales"
        " WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds, shop"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_SALES,
    upstreams=["toy.raw_sales"],
    grain="one row per day and shop",
    unique_key=["ds", "shop"],
    columns=_SALE,
    audits=_AUDITS,
    batch_size=4,
    owner="team:toy",
)
sales_of_three_days = Model(
    name="toy.sales_of_three_days",
    description="What was sold on a day and the two before it.",
    query=SqlQuery(
        "WITH days AS (SELECT EXPLODE(SEQUENCE(:start_ds, DATE_SUB(:end_ds, 1))) AS ds)"
        " SELECT days.ds, CAST(SUM(sold.amount) AS DECIMAL(18, 2)) AS amount FROM days"
        " JOIN (SELECT ds, amount FROM toy.sales"
        " WHERE ds >= DATE_SUB(:start_ds, 2) AND ds < :end_ds) AS sold"
        " ON sold.ds BETWEEN DATE_SUB(days.ds, 2) AND days.ds GROUP BY days.ds"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_SALES,
    upstreams=[Upstream("toy.sales", lookback=2)],
    grain="one row per day",
    unique_key=["ds"],
    columns=(Column("ds", "date"), Column("amount", "decimal(18,2)")),
    audits=[accepted_range("amount", 0, None)],
    batch_size=4,
    batch_concurrency=2,
    owner="team:toy",
)
sales_monthly = Model(
    name="toy.sales_monthly",
    description="What was sold in a month, beside the month before.",
    query=SqlQuery(
        "WITH months AS (SELECT CAST(DATE_TRUNC('MONTH', ds) AS DATE) AS month_start,"
        " SUM(amount) AS amount FROM toy.sales"
        " WHERE ds >= ADD_MONTHS(:start_ds, -1) AND ds < :end_ds GROUP BY 1)"
        " SELECT now.month_start, CAST(now.amount AS DECIMAL(18, 2)) AS amount,"
        " CAST(before.amount AS DECIMAL(18, 2)) AS amount_before FROM months AS now"
        " LEFT JOIN months AS before ON before.month_start = ADD_MONTHS(now.month_start, -1)"
        " WHERE now.month_start >= :start_ds AND now.month_start < :end_ds"
    ),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start=FIRST, end=LAST),
    upstreams=[Upstream("toy.sales", lookback=own_cells(1))],
    grain="one row per month",
    unique_key=["month_start"],
    columns=(
        Column("month_start", "date"),
        Column("amount", "decimal(18,2)"),
        Column("amount_before", "decimal(18,2)"),
    ),
    owner="team:toy",
)
returns = Model(
    name="toy.returns",
    description="What was brought back to each shop, per day.",
    query=SqlQuery(
        "SELECT ds, shop, CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount FROM toy.raw_returns"
        " WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds, shop"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_SALES,
    upstreams=["toy.raw_returns"],
    grain="one row per day and shop",
    unique_key=["ds", "shop"],
    columns=_SALE,
    audits=_AUDITS,
    batch_size=2,
    owner="team:toy",
)
returns_daily = Model(
    name="toy.returns_daily",
    description="What was brought back, per day.",
    query=SqlQuery(
        "SELECT ds, CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount FROM toy.returns"
        " WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_SALES,
    upstreams=["toy.returns"],
    grain="one row per day",
    unique_key=["ds"],
    columns=(Column("ds", "date"), Column("amount", "decimal(18,2)")),
    owner="team:toy",
)
clicks = Model(
    name="toy.clicks",
    description="Every click once.",
    query=SqlQuery(
        "SELECT click_id, clicked_at FROM toy.raw_clicks"
        " WHERE clicked_at >= :start_ts AND clicked_at < :end_ts"
    ),
    kind=IncrementalByTimeRange(time_column="clicked_at"),
    cadence=Hourly(start=FIRST, end="2024-01-28"),
    upstreams=["toy.raw_clicks"],
    grain="one row per click",
    unique_key=["click_id"],
    columns=raw_clicks.schema,
    batch_size=4,
    owner="team:toy",
)
clicks_daily = Model(
    name="toy.clicks_daily",
    description="How many clicks there were, per day.",
    query=SqlQuery(
        "SELECT CAST(clicked_at AS DATE) AS ds, COUNT(*) AS clicks FROM toy.clicks"
        " WHERE clicked_at >= :start_ts AND clicked_at < :end_ts GROUP BY 1"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=Daily(start=FIRST, end="2024-01-28"),
    upstreams=["toy.clicks"],
    grain="one row per day",
    unique_key=["ds"],
    columns=(Column("ds", "date"), Column("clicks", "bigint")),
    owner="team:toy",
)
shops = Model(
    name="toy.shops",
    description="Where each shop is.",
    query=SqlQuery("SELECT shop, city FROM toy.raw_shops"),
    kind=Full(),
    cadence=Whole(),
    upstreams=["toy.raw_shops"],
    grain="one row per shop",
    unique_key=["shop"],
    columns=raw_shops.schema,
    owner="team:toy",
)

MODELS = (
    *(sales, sales_of_three_days, sales_monthly, returns, returns_daily),
    *(clicks, clicks_daily, shops),
)
SOURCES = (raw_sales, raw_returns, raw_clicks, raw_shops)

_AMOUNTS = tuple(
    (date.fromisoformat(day), shop, Decimal(amount))
    for number, day in enumerate(DAYS, start=1)
    for shop, amount in (("north", number), ("south", 10 * number))
    if day != EMPTY_DAY
)
_ROWS = {
    raw_sales: _AMOUNTS,
    raw_returns: _AMOUNTS,
    raw_clicks: tuple(
        (number, datetime(2024, 1, 28, hour, 30, tzinfo=UTC))
        for number, hour in enumerate((0, 0, 5, 12, 23))
    ),
    raw_shops: (("north", "Kiel"), ("south", "Ulm")),
}
_ARROW = {
    "date": pa.date32(),
    "string": pa.string(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(18,2)": pa.decimal128(18, 2),
}


def land_rows(
    data_root: str,
    source: Source,
    *rows: tuple[object, ...],
    mode: Literal["append", "overwrite"] = "append",
) -> None:
    """Write rows into a source's table, as somebody else would: with another library than the product's."""
    schema = pa.schema([(column.name, _ARROW[column.dtype]) for column in source.schema])
    listed = [dict(zip(schema.names, row, strict=True)) for row in rows]
    table = pa.Table.from_pylist(listed, schema)
    write_deltalake(f"{data_root}/{source.path}", table, mode=mode)


def land(data_root: str) -> None:
    """Land every source afresh."""
    for source, rows in _ROWS.items():
        land_rows(data_root, source, *rows, mode="overwrite")


def _landing(source: Source) -> Callable[[object, str], bool]:
    def landed(_: object, data_root: str) -> bool:
        land_rows(data_root, source, *_ROWS[source], mode="overwrite")
        return True

    return landed


LANDINGS: Mapping[str, Callable[[object, str], bool]] = {
    source.name: _landing(source) for source in (raw_sales, raw_returns, raw_clicks)
}
"""`toy.raw_shops` has none: somebody else lands it."""
