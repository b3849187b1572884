"""The columns of the marketing models. Amounts are dollars."""

from __future__ import annotations

from typing import Annotated

import pandera.pyspark as pa
import pyspark.sql.types as T  # noqa: TC002 - pandera reads the annotations when it runs

CHANNELS = ("display", "email", "search", "social", "video")


class CampaignPerformance(pa.DataFrameModel):
    """One row per day, channel and campaign."""

    ds: T.DateType = pa.Field(description="UTC day of the events")
    channel: T.StringType = pa.Field(isin=CHANNELS)
    campaign_id: T.IntegerType
    impressions: T.LongType = pa.Field(ge=0)
    clicks: T.LongType = pa.Field(ge=0)
    ctr: T.DoubleType = pa.Field(nullable=True, ge=0, description="clicks per impression")
    cpc: Annotated[T.DecimalType, 18, 4] = pa.Field(nullable=True, description="cost per click")
    conversions: T.LongType = pa.Field(ge=0)
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0)
    cost_per_acquisition: Annotated[T.DecimalType, 18, 4] = pa.Field(
        nullable=True, description="cost per conversion; NULL without one"
    )


class CampaignTrendsMonthly(pa.DataFrameModel):
    """One row per month and campaign."""

    month_start: T.DateType
    campaign_id: T.IntegerType
    impressions: T.LongType = pa.Field(ge=0)
    clicks: T.LongType = pa.Field(ge=0)
    conversions: T.LongType = pa.Field(ge=0)
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0)
    previous_conversions: T.LongType = pa.Field(
        nullable=True, description="of the month before; NULL in the first month"
    )
    previous_cost: Annotated[T.DecimalType, 18, 4] = pa.Field(nullable=True)
    cost_change: Annotated[T.DecimalType, 18, 6] = pa.Field(
        nullable=True, description="month over month, as a share of the month before"
    )


class RoiAnalysis(pa.DataFrameModel):
    """One row per day, channel and campaign."""

    ds: T.DateType
    channel: T.StringType
    campaign_id: T.IntegerType
    conversions: T.LongType = pa.Field(ge=0)
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0)
    cost_per_acquisition: Annotated[T.DecimalType, 18, 4] = pa.Field(nullable=True)
    roi: Annotated[T.DecimalType, 18, 6] = pa.Field(
        nullable=True, description="what an acquisition is worth beyond its cost, per dollar of it"
    )
