"""The three models in our words; `BENCHMARK_EDIT` and `BENCHMARK_DAYS` say which and how long."""

from __future__ import annotations

import os

from backfill_assets.intervals.cadence import Daily, Monthly, Whole
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from benchmarks.peer import subject
from benchmarks.peer.subject import Size

_ASKED = os.environ  # noqa: TID251 - a catalog takes no arguments
_SIZE = Size(events=0, days=int(_ASKED.get("BENCHMARK_DAYS", "540")))
_DAYS = Daily(start=str(_SIZE.first_day), end=str(subject.LAST_DAY))
_WINDOW = "event_date >= :start_ds AND event_date < :end_ds"
_OWNER = "team:bench"

_PERFORMANCE = subject.performance(_ASKED.get("BENCHMARK_EDIT", subject.NO_EDIT), _WINDOW)
_TRENDS, _ROI = subject.trends(_WINDOW), subject.roi()


def _columns(declared: tuple[tuple[str, str], ...]) -> tuple[Column, ...]:
    return tuple(Column(name, dtype) for name, dtype in declared)


raw = Source(
    name=subject.SOURCE,
    path="sources/peer/ad_events",
    cadence=_DAYS,
    columns=_columns(subject.SOURCE_COLUMNS),
    times=TimeColumns(event="event_date"),
)

performance = Model(
    name=subject.PERFORMANCE,
    query=SqlQuery(_PERFORMANCE.sql),
    kind=IncrementalByTimeRange(time_column="event_date"),
    cadence=_DAYS,
    upstreams=[subject.SOURCE],
    grain="one row per day, campaign and channel",
    unique_key=["event_date", "campaign_id", "channel"],
    columns=_columns(_PERFORMANCE.columns),
    batch_size=subject.BATCH_DAYS,
    batch_concurrency=2,
    owner=_OWNER,
)

trends = Model(
    name=subject.TRENDS,
    query=SqlQuery(_TRENDS.sql),
    kind=IncrementalByTimeRange(time_column="month_start"),
    cadence=Monthly(start=str(_SIZE.first_month), end=str(subject.LAST_MONTH_ENDS)),
    upstreams=[subject.PERFORMANCE],
    grain="one row per month and campaign",
    unique_key=["month_start", "campaign_id"],
    columns=_columns(_TRENDS.columns),
    batch_size=subject.BATCH_MONTHS,
    owner=_OWNER,
)

roi = Model(
    name=subject.ROI,
    query=SqlQuery(_ROI.sql),
    kind=Full(),
    cadence=Whole(),
    upstreams=[subject.PERFORMANCE],
    grain="one row per campaign",
    unique_key=["campaign_id"],
    columns=_columns(_ROI.columns),
    owner=_OWNER,
)

MODELS, SOURCES = (performance, trends, roi), (raw,)
