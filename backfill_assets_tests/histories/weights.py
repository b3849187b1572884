"""Weights, with a tolerance, and what reads them: what some histories have beside the rest.

`weighed` gives the weight of what was sold on each day; `smoothed` adds up that of a day and of some before it. A
correction is mostly within the tolerance, so that `smoothed` may hold what follows from an earlier weight.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.column import Column
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.histories.daily import daily_model, trailing
from backfill_assets_tests.histories.sales import SALES

if TYPE_CHECKING:
    from backfill_assets.models.model import Model
    from backfill_assets_tests.histories.declared import Declared

WEIGHED, SMOOTHED = "shop.weighed", "shop.smoothed"
TOLERANCE = 20.0


def weighed_model(name: str, declared: Declared) -> Model:
    """Give the weight of the sales of each day."""
    sql = (
        f"SELECT ds, CAST(SUM(amount) * {declared.factor} AS DOUBLE) AS total"
        f" FROM {SALES} WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds"
    )
    weight = Column("total", "double", tolerance=TOLERANCE)
    return daily_model(name, declared, sql, weight, [Upstream(SALES)], declared.start)


def smoothed_model(name: str, declared: Declared) -> Model:
    """Add up the weights of each day, and of some days before it."""
    back = declared.lookback
    sql = trailing("CAST(SUM(earlier.total) AS DOUBLE)", WEIGHED, "total", back)
    reads = [Upstream(WEIGHED, lookback=back)]
    return daily_model(name, declared, sql, Column("total", "double"), reads, declared.start)


def slack(name: str, declared: Declared) -> float:
    """Say by how much a value may differ from what follows from the published upstreams."""
    return (declared.lookback + 1) * TOLERANCE if name == SMOOTHED else 0
