"""A scratch project by the hour: clicks, and how many there were each day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets_tests.stories.project import Project

if TYPE_CHECKING:
    from pathlib import Path

CLICKS, DAILY = "web.clicks", "web.clicks_daily"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
HOURS, FILLED = 72, 48
_SOURCE = "sources/raw_clicks"

_CATALOG = '''"""Clicks by the hour."""

from backfill_assets import (
    Column, Daily, Hourly, IncrementalByTimeRange, Model, Source, SqlQuery, TimeColumns,
)

raw = Source(
    name="web.raw_clicks",
    path="sources/raw_clicks",
    cadence=Hourly(start="2024-01-01"),
    columns=[Column("click_id", "bigint"), Column("clicked_at", "timestamp")],
    times=TimeColumns(event="clicked_at"),
    owner="team:web",
)
clicks = Model(
    name="web.clicks",
    query=SqlQuery("""
        SELECT click_id, clicked_at FROM web.raw_clicks
        WHERE clicked_at >= :start_ts AND clicked_at < :end_ts
    """),
    kind=IncrementalByTimeRange(time_column="clicked_at"),
    cadence=Hourly(start="2024-01-01", end="2024-01-03"),
    upstreams=["web.raw_clicks"],
    grain="one row per click",
    unique_key=["click_id"],
    columns=[Column("click_id", "bigint"), Column("clicked_at", "timestamp")],
    batch_size=12,
    owner="team:web",
)
daily = Model(
    name="web.clicks_daily",
    query=SqlQuery("""
        SELECT CAST(clicked_at AS DATE) AS ds, COUNT(*) AS clicks FROM web.clicks
        WHERE clicked_at >= :start_ts AND clicked_at < :end_ts GROUP BY 1
    """),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=Daily(start="2024-01-01", end="2024-01-03"),
    upstreams=["web.clicks"],
    grain="one row per day",
    unique_key=["ds"],
    columns=[Column("ds", "date"), Column("clicks", "bigint")],
    owner="team:web",
)
MODELS, SOURCES = (clicks, daily), (raw,)
'''


def hourly_project(folder: Path) -> Project:
    """Lay it out and land two clicks an hour; nothing is filled."""
    project = Project(folder)
    project.package.mkdir(parents=True)
    project.data.mkdir()
    (project.package / "__init__.py").touch()
    (project.package / "catalog.py").write_text(_CATALOG)
    write_deltalake(str(project.data / _SOURCE), _clicks())
    return project


def add_seconds(project: Project) -> None:
    """Let each click tell its second: a new column, so what is published stays what it was."""
    project.edit(
        "catalog.py",
        "SELECT click_id, clicked_at FROM",
        "SELECT click_id, clicked_at, SECOND(clicked_at) AS second FROM",
    )
    project.edit(
        "catalog.py",
        'columns=[Column("click_id", "bigint"), Column("clicked_at", "timestamp")],\n'
        "    batch_size=12",
        'columns=[Column("click_id", "bigint"), Column("clicked_at", "timestamp"),\n'
        '        Column("second", "int")],\n    batch_size=12',
    )


def hour(number: int) -> str:
    """Write the start of an hour of the history, the first being 0."""
    return (FIRST + timedelta(hours=number)).isoformat()


def _clicks() -> pa.Table:
    times = [
        FIRST + timedelta(hours=number, minutes=20 * click, seconds=number % 60)
        for number in range(HOURS)
        for click in (1, 2)
    ]
    return pa.table(
        {
            "click_id": pa.array(range(len(times)), pa.int64()),
            "clicked_at": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
