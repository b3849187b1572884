"""The columns of the web models."""

from __future__ import annotations

import pandera.pyspark as pa
import pyspark.sql.types as T  # noqa: TC002 - pandera reads the annotations when it runs


class Events(pa.DataFrameModel):
    """One row per page view."""

    event_id: T.StringType = pa.Field(description="of the page view")
    event_time: T.TimestampType = pa.Field(description="UTC")
    event_date: T.DateType = pa.Field(description="UTC day of event_time")
    user_id: T.StringType = pa.Field(description="the visitor")
    page: T.StringType = pa.Field(description="the path that was viewed")
    ingested_at: T.TimestampType = pa.Field(description="UTC; when the row arrived")


class Sessions(pa.DataFrameModel):
    """One row per session."""

    session_id: T.StringType = pa.Field(description="of the visitor and the first page view")
    user_id: T.StringType = pa.Field(description="the visitor")
    session_date: T.DateType = pa.Field(description="UTC day in which the session was over")
    started_at: T.TimestampType = pa.Field(description="UTC; the first page view")
    ended_at: T.TimestampType = pa.Field(description="the last page view")
    closed_at: T.TimestampType = pa.Field(description="when it counted as over")
    page_views: T.LongType = pa.Field(ge=1, description="number of page views")
    pages: T.LongType = pa.Field(ge=1, description="distinct ones")
