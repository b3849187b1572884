"""A small ledger: hourly moves of money, five models over them, and what a person edits.

A copy of this file is the catalog of every scratch project, so nothing of the tests is imported.
"""

from __future__ import annotations

from backfill_assets import (
    Column,
    Daily,
    Hourly,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    Model,
    Monthly,
    Source,
    SqlQuery,
    TimeColumns,
    Upstream,
    own_cells,
    row_rule,
)

FIRST, LAST = "2024-01-28", "2024-02-04"
_DAYS = Daily(start=FIRST, end=LAST)
_OWNER = "team:ledger"
_MONEY = "decimal(18,2)"

moves = Source(
    name="ledger.moves",
    path="sources/moves",
    cadence=Hourly(start=FIRST),
    columns=(
        Column("move_id", "bigint"),
        Column("account", "string"),
        Column("moved_at", "timestamp"),
        Column("amount", _MONEY),
    ),
    times=TimeColumns(event="moved_at"),
    owner=_OWNER,
)

entries = Model(
    name="ledger.entries",
    description="Every move once, on its day.",
    query=SqlQuery(
        "SELECT move_id, account, CAST(moved_at AS DATE) AS ds, amount FROM ledger.moves"
        " WHERE moved_at >= :start_ts AND moved_at < :end_ts"
    ),
    kind=IncrementalByUniqueKey(time_column="ds"),
    deletes="absent",
    cadence=_DAYS,
    upstreams=["ledger.moves"],
    grain="one row per move",
    unique_key=["move_id"],
    columns=(
        Column("move_id", "bigint"),
        Column("account", "string"),
        Column("ds", "date"),
        Column("amount", _MONEY),
    ),
    audits=[row_rule("amount_is_sane", "ABS(amount) < 1000000")],
    late_window=2,
    batch_size=4,
    batch_concurrency=2,
    owner=_OWNER,
)
daily = Model(
    name="ledger.daily",
    description="What each account moved, per day.",
    query=SqlQuery(
        "SELECT ds, account, CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount, COUNT(*) AS moves"
        " FROM ledger.entries WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds, account"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_DAYS,
    upstreams=["ledger.entries"],
    grain="one row per day and account",
    unique_key=["ds", "account"],
    columns=(
        Column("ds", "date"),
        Column("account", "string"),
        Column("amount", _MONEY),
        Column("moves", "bigint"),
    ),
    audits=[row_rule("there_are_moves", "moves > 0")],
    late_window=2,
    batch_size=8,
    owner=_OWNER,
)
three_days = Model(
    name="ledger.three_days",
    description="What was moved on a day and the two before it.",
    query=SqlQuery(
        "WITH days AS (SELECT EXPLODE(SEQUENCE(:start_ds, DATE_SUB(:end_ds, 1))) AS ds)"
        " SELECT days.ds, CAST(SUM(moved.amount) AS DECIMAL(18, 2)) AS amount FROM days"
        " JOIN (SELECT ds, amount FROM ledger.daily"
        " WHERE ds >= DATE_SUB(:start_ds, 2) AND ds < :end_ds) AS moved"
        " ON moved.ds BETWEEN DATE_SUB(days.ds, 2) AND days.ds GROUP BY days.ds"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_DAYS,
    upstreams=[Upstream("ledger.daily", lookback=2)],
    grain="one row per day",
    unique_key=["ds"],
    columns=(Column("ds", "date"), Column("amount", _MONEY)),
    late_window=4,
    batch_size=8,
    owner=_OWNER,
)
hourly = Model(
    name="ledger.hourly",
    description="What each account moved, per hour: hours of a day share files, as do two batches.",
    query=SqlQuery(
        "SELECT DATE_TRUNC('HOUR', moved_at) AS moved_in, account,"
        " CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount, COUNT(*) AS moves"
        " FROM ledger.moves WHERE moved_at >= :start_ts AND moved_at < :end_ts GROUP BY 1, 2"
    ),
    kind=IncrementalByTimeRange(time_column="moved_in"),
    cadence=Hourly(start="2024-01-31", end="2024-02-02"),
    upstreams=["ledger.moves"],
    grain="one row per hour and account",
    unique_key=["moved_in", "account"],
    columns=(
        Column("moved_in", "timestamp"),
        Column("account", "string"),
        Column("amount", _MONEY),
        Column("moves", "bigint"),
    ),
    late_window=2,
    batch_size=40,
    batch_concurrency=2,
    owner=_OWNER,
)
monthly = Model(
    name="ledger.monthly",
    description="What was moved in a month, beside the month before.",
    query=SqlQuery(
        "WITH months AS (SELECT CAST(DATE_TRUNC('MONTH', ds) AS DATE) AS month_start,"
        " SUM(amount) AS amount FROM ledger.daily"
        " WHERE ds >= ADD_MONTHS(:start_ds, -1) AND ds < :end_ds GROUP BY 1)"
        " SELECT now.month_start, CAST(now.amount AS DECIMAL(18, 2)) AS amount,"
        " CAST(before.amount AS DECIMAL(18, 2)) AS amount_before FROM months AS now"
        " LEFT JOIN months AS before ON before.month_start = ADD_MONTHS(now.month_start, -1)"
        " WHERE now.month_start >= :start_ds AND now.month_start < :end_ds"
    ),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start=FIRST, end=LAST),
    upstreams=[Upstream("ledger.daily", lookback=own_cells(1))],
    grain="one row per month",
    unique_key=["month_start"],
    columns=(
        Column("month_start", "date"),
        Column("amount", _MONEY),
        Column("amount_before", _MONEY),
    ),
    late_window=1,
    owner=_OWNER,
)

MODELS = (entries, daily, three_days, hourly, monthly)
SOURCES = (moves,)
