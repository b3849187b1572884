"""S3: seven days of page views get the length of their session, merged day by day, two days at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.testing import shared_spark, temporary_project, time_passed

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL = "web.events"
FIRST = datetime(2024, 6, 3, tzinfo=UTC)
SESSIONS = 20
"""A day; the n-th has 1 + n % 4 views."""
NEW = """          ingested_at,
          UNIX_TIMESTAMP(MAX(event_time) OVER (PARTITION BY session_id))
            - UNIX_TIMESTAMP(MIN(event_time) OVER (PARTITION BY session_id)) AS session_length_sec
        FROM web.views
"""


def views() -> list[dict[str, Any]]:
    """The views of seven days, each once."""
    found = []
    for day in range(7):
        for number in range(SESSIONS):
            began = FIRST + timedelta(days=day, minutes=47 * number)
            for view in range(1 + number % 4):
                at = began + timedelta(seconds=view * (30 + number))
                found.append(
                    {
                        "event_id": f"d{day}s{number}v{view}",
                        "session_id": f"d{day}s{number}",
                        "event_time": at,
                        "event_date": at.date(),
                        "load_ms": 100 + (day * 31 + number * 7 + view) % 200,
                        "ingested_at": at + timedelta(minutes=1),
                    }
                )
    return found


def delivered() -> list[dict[str, Any]]:
    """The same as it was delivered: every tenth view twice, the second time two hours later."""
    again = [
        {**view, "ingested_at": view["ingested_at"] + timedelta(hours=2)} for view in views()[::10]
    ]
    return [*views(), *again]


def medians(table: pa.Table, column: str) -> list[float]:
    """The median of a column, day by day."""
    by_day: dict[Any, list[float]] = {}
    for row in table.to_pylist():
        by_day.setdefault(row["event_date"], []).append(row[column])
    return [median(by_day[day]) for day in sorted(by_day)]


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    filled(project)
    plan = built(project)
    compared(project, plan)
    swapped(project, plan)
    watched(project, plan)


def filled(project: TemporaryProject) -> None:
    """Fill seven days; every tenth view was delivered twice."""
    write_deltalake(project.data / "sources/views", pa.Table.from_pylist(delivered()))
    print("# Seven days of page views, one row per view.\n")
    print(project.do("run").transcript)


def built(project: TemporaryProject) -> str:
    """Add a column, and build it in the shadow of what is read."""
    print("# Each view gets the length of its session.\n")
    print(project.edit("shop/catalog.py", "          ingested_at\n        FROM web.views\n", NEW))
    column = '        Column("ingested_at", "timestamp"),\n    ],\n    times=TimeColumns(event="event_time"'
    wider = column.replace("    ],", '        Column("session_length_sec", "bigint"),\n    ],')
    print(project.edit("shop/catalog.py", column, wider))
    planned = project.do("plan", "--reason", "how long sessions are", code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    return planned.plan_id


def compared(project: TemporaryProject, plan: str) -> None:
    """Compare what is built with what is read."""
    print(project.do("diff", plan, code=2).transcript)
    shadow, read = project.built(MODEL, plan), project.published(MODEL)
    print("# Medians by day: of a column that must stay as it is, and of the new one.\n")
    print("load_ms before      ", medians(read, "load_ms"))
    print("load_ms after       ", medians(shadow, "load_ms"))
    print("session_length_sec  ", medians(shadow, "session_length_sec"), end="\n\n")


def swapped(project: TemporaryProject, plan: str) -> None:
    """Publish it at once; the table before it is kept for the way back."""
    print(project.do("promote", plan, "--yes", "--watch", "24h").transcript)
    print("# The old table is kept for thirty days: nothing of it can be collected yet.\n")
    print(project.do("gc", "--dry-run").transcript)
    print(project.do("audit").transcript)


def watched(project: TemporaryProject, plan: str) -> None:
    """Look at it after twelve hours, and after a day, which ends the watch."""
    print("# Twelve hours later, by the clock of the project; then a day later.\n")
    for hours in (12, 24):
        with time_passed(timedelta(hours=hours)):
            print(project.do("aftercare", plan).transcript)
    print(project.do("aftercare").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
