"""The tiny shop as a catalog of its own, with one of its models read by a report."""

from __future__ import annotations

from backfill_assets import Consumer, Reading
from backfill_assets_tests import toy

MODELS, SOURCES = toy.MODELS, toy.SOURCES
CONSUMERS = (
    Consumer(
        name="counter report",
        kind="dashboard",
        owner="team:toy",
        reads=[Reading("toy.sales_of_three_days", columns=["ds", "amount"], days_back=2)],
    ),
)
