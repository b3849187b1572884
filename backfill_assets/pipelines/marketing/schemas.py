"""The columns of the marketing models. Amounts are dollars."""

from __future__ import annotations

from typing import Annotated

import pandera.pyspark as pa
import pyspark.sql.types as T  # noqa: TC002 - pandera reads the annotations when it runs

CHANNELS = ("display", "email", "search", "social", "video")


class CampaignPerformance(pa.DataFrameModel):
    """One row per day, channel and campaign."""

    ds: T.DateType = pa.Field(description="UTC day of the events")
    channel: T.StringType = pa.Field(isin=CHANNELS, description="where the ads were shown")
    campaign_id: T.IntegerType = pa.Field(description="the campaign")
    impressions: T.LongType = pa.Field(ge=0, description="ads shown")
    clicks: T.LongType = pa.Field(ge=0, description="ads clicked")
    ctr: T.DoubleType = pa.Field(nullable=True, ge=0, description="clicks per impression")
    cpc: Annotated[T.DecimalType, 18, 4] = pa.Field(nullable=True, description="cost per click")
    conversions: T.LongType = pa.Field(
        ge=0, description="events in which a click led to a purchase"
    )
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="of the ads")
    cost_per_acquisition: Annotated[T.DecimalType, 18, 4] = pa.Field(
        nullable=True, description="cost per conversion; NULL without one"
    )


class CampaignTrendsMonthly(pa.DataFrameModel):
    """One row per month and campaign."""

    month_start: T.DateType = pa.Field(description="first day of the month, UTC")
    campaign_id: T.IntegerType = pa.Field(description="the campaign")
    impressions: T.LongType = pa.Field(ge=0, description="ads shown")
    clicks: T.LongType = pa.Field(ge=0, description="ads clicked")
    conversions: T.LongType = pa.Field(
        ge=0, description="events in which a click led to a purchase"
    )
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="of the ads")
    previous_conversions: T.LongType = pa.Field(
        nullable=True, description="of the month before; NULL in the first month"
    )
    previous_cost: Annotated[T.DecimalType, 18, 4] = pa.Field(
        nullable=True, description="of the month before; NULL in the first month"
    )
    cost_change: Annotated[T.DecimalType, 18, 6] = pa.Field(
        nullable=True, description="month over month, as a share of the month before"
    )


class RoiAnalysis(pa.DataFrameModel):
    """One row per day, channel and campaign."""

    ds: T.DateType = pa.Field(description="UTC day of the events")
    channel: T.StringType = pa.Field(description="where the ads were shown")
    campaign_id: T.IntegerType = pa.Field(description="the campaign")
    conversions: T.LongType = pa.Field(
        ge=0, description="events in which a click led to a purchase"
    )
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="of the ads")
    cost_per_acquisition: Annotated[T.DecimalType, 18, 4] = pa.Field(
        nullable=True, description="of a conversion; NULL without one"
    )
    roi: Annotated[T.DecimalType, 18, 6] = pa.Field(
        nullable=True, description="what an acquisition is worth beyond its cost, per dollar of it"
    )
