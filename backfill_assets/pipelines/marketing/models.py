"""The marketing models: from ad events to each campaign's return, by day and by month."""

from __future__ import annotations

from backfill_assets.intervals.cadence import Daily, Monthly
from backfill_assets.models.audit import (
    accepted_range,
    reconciles,
    row_count_within,
    row_rule,
    sql_audit,
)
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.sql.sql_file import sql_file
from backfill_assets.models.upstream import Upstream, own_cells
from backfill_assets.pipelines.marketing import schemas
from backfill_assets.pipelines.marketing.sources import FIRST_DAY, LAST_DAY

_DAYS = Daily(start=FIRST_DAY, end=LAST_DAY)
_OWNER = "team:marketing-analytics"


def _per(ratio: str, of: str, by: str, places: int = 4) -> str:
    """Give the condition that a column is the ratio of two others, NULL without a divisor."""
    return f"{ratio} <=> CAST({of} / NULLIF({by}, 0) AS DECIMAL(18, {places}))"


_COST_PER_CONVERSION = row_rule(
    "cpa_is_cost_per_conversion", _per("cost_per_acquisition", "cost", "conversions")
)

campaign_performance = Model(
    name="marketing.campaign_performance",
    description="What each campaign showed, got and cost, per day and channel.",
    query=sql_file("campaign_performance.sql"),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_DAYS,
    upstreams=["marketing.ad_events"],
    grain="one row per day, channel and campaign",
    unique_key=["ds", "channel", "campaign_id"],
    columns=schemas.CampaignPerformance,
    times=TimeColumns(event="ds"),
    audits=[
        reconciles("cost", "marketing.ad_events"),
        row_count_within(0.02, warn=True),
        accepted_range("cpc", 0, None),
        accepted_range("cost_per_acquisition", 0, None),
        row_rule("ctr_is_clicks_per_impression", "ctr <=> clicks / NULLIF(impressions, 0)"),
        row_rule("cpc_is_cost_per_click", _per("cpc", "cost", "clicks")),
        _COST_PER_CONVERSION,
        row_rule("cost_needs_events", "cost = 0 OR impressions + clicks + conversions > 0"),
    ],
    late_window=3,  # networks report up to three days late
    batch_size=180,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "performance"},
)

campaign_trends_monthly = Model(
    name="marketing.campaign_trends_monthly",
    description="Each campaign month over month; only whole months.",
    query=sql_file("campaign_trends_monthly.sql"),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start=FIRST_DAY, end="2025-05-31"),
    upstreams=[Upstream("marketing.campaign_performance", lookback=own_cells(1))],
    grain="one row per month and campaign",
    unique_key=["month_start", "campaign_id"],
    columns=schemas.CampaignTrendsMonthly,
    times=TimeColumns(event="month_start"),
    audits=[
        row_rule("starts_on_the_first", "DAY(month_start) = 1"),
        *(
            reconciles(column, "marketing.campaign_performance")
            for column in ("impressions", "clicks", "conversions", "cost")
        ),
        accepted_range("previous_conversions", 0, None),
        accepted_range("previous_cost", 0, None),
        row_rule(
            "month_before_is_known_as_a_whole",
            "(previous_cost IS NULL) = (previous_conversions IS NULL)",
        ),
        row_rule(
            "change_is_of_the_month_before",
            _per("cost_change", "(cost - previous_cost)", "previous_cost", places=6),
        ),
    ],
    late_window=1,  # the last days of a month come after its end
    owner=_OWNER,
    tags={"domain": "performance"},
)

roi_analysis = Model(
    name="marketing.roi_analysis",
    description="Whether an acquisition was worth what it cost.",
    query=sql_file("roi_analysis.sql"),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=_DAYS,
    upstreams=["marketing.campaign_performance"],
    grain="one row per day, channel and campaign",
    unique_key=["ds", "channel", "campaign_id"],
    columns=schemas.RoiAnalysis,
    times=TimeColumns(event="ds"),
    audits=[
        reconciles("cost", "marketing.campaign_performance"),
        reconciles("conversions", "marketing.campaign_performance"),
        _COST_PER_CONVERSION,
        row_rule(
            "roi_is_known_with_the_cost",
            "(roi IS NULL) = (NULLIF(cost_per_acquisition, 0) IS NULL)",
        ),
        sql_audit(
            "an_acquisition_is_worth_the_same_all_day",
            """SELECT * FROM {rows} WHERE ds IN (
                 SELECT ds FROM {rows} GROUP BY ds
                 HAVING MAX((roi + 1) * cost_per_acquisition) - MIN((roi + 1) * cost_per_acquisition) > 0.01
               )""",
        ),
        accepted_range("roi", -1, None),  # nothing loses more than it cost
    ],
    late_window=3,
    batch_size=180,
    batch_concurrency=2,
    owner=_OWNER,
    tags={"domain": "return"},
)

MODELS = (campaign_performance, campaign_trends_monthly, roi_analysis)
