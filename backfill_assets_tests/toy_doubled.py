"""The sales of the tiny shop, with every amount doubled."""

from __future__ import annotations

from dataclasses import replace

from backfill_assets import SqlQuery
from backfill_assets_tests import toy

MODELS = (
    replace(
        toy.sales,
        query=SqlQuery(
            "SELECT ds, shop, CAST(2 * SUM(amount) AS DECIMAL(18, 2)) AS amount FROM toy.raw_sales"
            " WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds, shop"
        ),
    ),
)
SOURCES = (toy.raw_sales,)
