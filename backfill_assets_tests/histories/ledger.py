"""A ledger that is rebuilt as a whole, in ranges of its key: what some histories have beside the rest.

`ledger` holds every sale of a day that is over, by its id.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals import Whole
from backfill_assets.models.column import Column
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.kind import Full
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets_tests.histories.sales import SALES

if TYPE_CHECKING:
    from backfill_assets_tests.histories.declared import Declared

LEDGER = "shop.ledger"
RANGES = ((), (5,), (2, 9, 20))
"""Where the ranges of the key begin in which the ledger is computed; nowhere for all rows at once."""


def ledger_model(name: str, declared: Declared) -> Model:
    """Hold each sale as a row, rebuilt as a whole."""
    sql = f"SELECT id, ds, CAST(amount * {declared.factor} AS BIGINT) AS total FROM {SALES}"
    return Model(
        name=name,
        query=SqlQuery(sql),
        columns=(Column("id", "bigint"), Column("total", "bigint"), Column("ds", "date")),
        kind=Full(),
        cadence=Whole(),
        upstreams=[SALES],
        unique_key=["id"],
        key_ranges=KeyRanges("id", declared.ranges) if declared.ranges else None,
        late_window=declared.late_window,
        description=declared.note,
        grain="one row per sale",
        owner="team:shop",
    )
