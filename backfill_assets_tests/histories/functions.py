"""A model that is a Python function, and what reads it: what some histories have beside the rest.

`paced` adds up a day and some before it, by a function whose factor stands in a module that it imports; `paces` adds up
what `paced` publishes.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.models.column import Column
from backfill_assets.models.python.function_query import ModuleQuery
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.histories.daily import daily_model, trailing

if TYPE_CHECKING:
    from backfill_assets.models.model import Model
    from backfill_assets_tests.histories.declared import Declared

PACED, PACES = "shop.paced", "shop.paces"

_FUNCTION = '''"""Paces; {note}."""

from shop_prices import FACTOR

BACK = {back}


def paced(inputs, interval):
    """Add up each day and some before it."""
    days = inputs["{days}"]  # {note}
    rows = days.selectExpr("ds", "total")
    for back in range(1, BACK + 1):
        rows = rows.unionByName(days.selectExpr(f"CAST(DATE_ADD(ds, {{back}}) AS DATE) AS ds", "total"))
    sums = rows.groupBy("ds").agg({{"total": "sum"}})
    own = sums.where(f"ds >= DATE '{{interval.start:%Y-%m-%d}}' AND ds < DATE '{{interval.end:%Y-%m-%d}}'")
    return own.selectExpr("ds", f"CAST(`sum(total)` * {{FACTOR}} AS BIGINT) AS total")
'''
_PRICES = '''"""What is multiplied by."""

FACTOR = {factor}
'''


def paced_model(name: str, declared: Declared, days: str) -> Model:
    """Add up each day and some before it, by a function."""
    reads = [Upstream(days, lookback=declared.lookback)]
    total = Column("total", "bigint")
    code = _FUNCTION.format(note=declared.note, back=declared.lookback, days=days)
    modules = (
        StoredModule("shop_paces", code),
        StoredModule("shop_prices", _PRICES.format(factor=declared.factor)),
    )
    sql = f"SELECT ds, total FROM {days} WHERE ds >= :start_ds AND ds < :end_ds"
    model = daily_model(name, declared, sql, total, reads, declared.start)
    return replace(model, query=ModuleQuery("paced", "shop_paces", modules))


def paces_model(name: str, declared: Declared) -> Model:
    """Add up the paces of each day and of some days before it."""
    back = declared.lookback
    sql = trailing(f"CAST(SUM(earlier.total) + {declared.plus} AS BIGINT)", PACED, "total", back)
    reads = [Upstream(PACED, lookback=back)]
    return daily_model(name, declared, sql, Column("total", "bigint"), reads, declared.start)
