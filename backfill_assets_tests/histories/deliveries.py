"""Deliveries, of which every day has some: what some histories have beside the rest.

A day without a single one has not been told of yet, so that its cells wait; what is published of a day that vanishes
stays until a plan builds it again. `arrivals` adds up the deliveries of a day and of some before it; `stock` is what has
arrived, less what was sold.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.source import Source, TimeColumns, WhenEmpty
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.histories.daily import daily_model, trailing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.model import Model
    from backfill_assets_tests.histories.declared import Declared

DELIVERIES = "shop.deliveries"
ARRIVALS, STOCK = "shop.arrivals", "shop.stock"

FIRST_DELIVERY = "2024-03-20"
_OWN = "WHERE ds >= :start_ds AND ds < :end_ds"


def deliveries() -> Source:
    """Deliveries, by the day."""
    return Source(
        name=DELIVERIES,
        path="deliveries",
        cadence=Daily(start=FIRST_DELIVERY),
        times=TimeColumns(event="ds"),
        columns=(Column("ds", "date"), Column("id", "bigint"), Column("amount", "bigint")),
        when_empty=WhenEmpty.WAIT,
        owner="team:shop",
    )


def arrivals_model(name: str, declared: Declared) -> Model:
    """Add up the deliveries of each day, and of some days before it."""
    back = declared.lookback
    total = f"CAST(SUM(earlier.amount) * {declared.factor} AS BIGINT)"
    sql = trailing(total, DELIVERIES, "amount", back)
    return _model(name, declared, sql, [Upstream(DELIVERIES, lookback=back)])


def stock_model(name: str, declared: Declared, sold: str) -> Model:
    """Take what was sold on each day, as a model says, from what had arrived."""
    sql = (
        f"SELECT arrivals.ds AS ds, CAST(arrivals.total * {declared.factor} - days.total AS BIGINT) AS total"
        f" FROM (SELECT ds, total FROM {ARRIVALS} {_OWN}) AS arrivals"
        f" JOIN (SELECT ds, total FROM {sold} {_OWN}) AS days ON arrivals.ds = days.ds"
    )
    return _model(name, declared, sql, [Upstream(ARRIVALS), Upstream(sold)])


def _model(name: str, declared: Declared, sql: str, reads: Sequence[Upstream]) -> Model:
    return daily_model(name, declared, sql, Column("total", "bigint"), reads, FIRST_DELIVERY)
