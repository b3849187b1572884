"""Models of days, and the query that several of them share: what a day and some days before it add up to."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.upstream import Upstream
    from backfill_assets_tests.histories.declared import Declared


def daily_model(
    name: str,
    declared: Declared,
    sql: str,
    value: Column,
    reads: Sequence[Upstream],
    start: str,
) -> Model:
    """Declare a model with one row, and one value, per day."""
    return Model(
        name=name,
        query=SqlQuery(sql),
        columns=(Column("ds", "date"), value),
        kind=IncrementalByTimeRange("ds"),
        cadence=Daily(start=start, end=declared.end, cron=declared.cron),
        upstreams=reads,
        unique_key=["ds"],
        late_window=declared.late_window,
        batch_size=declared.batch_size,
        description=declared.note,
        grain="one row per day",
        owner="team:shop",
    )


def trailing(total: str, table: str, column: str, back: int, only: str = "TRUE") -> str:
    """Write a query that adds up a column of each day and of some days before it.

    Args:
        total: what is given of each day, of the column as `earlier.<column>`.
        table: what is read.
        column: of it.
        back: how many days before.
        only: which of its rows.
    """
    return (
        "WITH dates AS (SELECT EXPLODE(SEQUENCE(:start_ds, DATE_SUB(:end_ds, 1))) AS ds)"
        f" SELECT dates.ds, {total} AS total FROM dates"
        f" JOIN (SELECT ds, {column} FROM {table}"
        f" WHERE {only} AND ds >= DATE_SUB(:start_ds, {back}) AND ds < :end_ds) AS earlier"
        f" ON earlier.ds BETWEEN DATE_SUB(dates.ds, {back}) AND dates.ds GROUP BY dates.ds"
    )
