"""The consumers of the commerce models, and how far back each reads."""

from __future__ import annotations

from backfill_assets.models.consumer import Consumer, ConsumerKind, Reading

CONSUMERS = (
    Consumer(
        name="yearly accounts",
        description="Revenue and margin since the shop opened.",
        kind=ConsumerKind.APPLICATION,
        owner="team:finance",
        reads=[Reading("commerce.gross_margin_daily"), Reading("commerce.revenue_monthly")],
    ),
)
