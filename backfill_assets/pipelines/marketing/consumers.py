"""The consumers of the marketing models, and how far back each reads."""

from __future__ import annotations

from backfill_assets.models.consumer import Consumer, ConsumerKind, Reading

CONSUMERS = (
    Consumer(
        name="campaign dashboard",
        description="What the campaigns of the last year cost and brought; by month, too.",
        kind=ConsumerKind.DASHBOARD,
        owner="team:marketing-analytics",
        reads=[
            Reading(
                "marketing.campaign_performance",
                columns=["ds", "channel", "campaign_id", "cost", "cost_per_acquisition"],
                days_back=365,
            ),
            Reading("marketing.campaign_trends_monthly", days_back=365),
        ],
    ),
    Consumer(
        name="budget review",
        description="Where the next quarter's budget goes.",
        kind=ConsumerKind.NOTEBOOK,
        owner="team:growth",
        reads=[
            Reading("marketing.roi_analysis", columns=["ds", "channel", "roi"], days_back=180),
        ],
    ),
)
