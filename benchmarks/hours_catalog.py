"""The catalog of the empty backfill: one hourly model of 5,000 hours, over a source without a row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backfill_assets.intervals.cadence import Hourly
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery

HOURS = 5_000
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_LIFE = Hourly(start=FIRST, end=FIRST + timedelta(hours=HOURS))

seen = Source(
    name="bench.seen",
    path="sources/bench/seen",
    cadence=_LIFE,
    columns=(Column("at", "timestamp", nullable=False), Column("id", "bigint", nullable=False)),
    times=TimeColumns(event="at"),
)

hours = Model(
    name="bench.hours",
    query=SqlQuery("SELECT at, id FROM bench.seen WHERE at >= :start_ts AND at < :end_ts"),
    kind=IncrementalByTimeRange(time_column="at"),
    cadence=_LIFE,
    upstreams=["bench.seen"],
    grain="one row per event",
    unique_key=["id"],
    columns=seen.columns,
    owner="team:bench",
)

MODELS, SOURCES = (hours,), (seen,)
