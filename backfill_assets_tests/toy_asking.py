"""The sales of the tiny shop, read by a report that is asked before they change."""

from __future__ import annotations

from backfill_assets import Consumer, Reading
from backfill_assets_tests import toy

MODELS, SOURCES = (toy.sales,), (toy.raw_sales,)
CONSUMERS = (
    Consumer(
        name="counter report",
        kind="dashboard",
        owner="team:toy",
        reads=[Reading("toy.sales")],
        on_change="ack",
    ),
)
