"""What a project's state says of a backfill: read beside the processes that write it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def batch_spans(state: Path, plan: str | None = None) -> list[tuple[float, float]]:
    """Read when each committed batch began and ended, in unix seconds.

    Args:
        state: the database.
        plan: the plan whose batches are meant; none, all.
    """
    query = (
        "SELECT started_at, finished_at FROM batches WHERE status = 'committed'"
        " AND (? IS NULL OR plan_id = ?)"
    )
    with closing(_opened(state)) as db:
        return [(start / 1e6, end / 1e6) for start, end in db.execute(query, (plan, plan))]


def number(state: Path, query: str) -> int:
    """Ask for one number; nothing, as long as the database or its tables are not made yet."""
    if not state.exists():
        return 0
    with closing(_opened(state)) as db:
        try:
            return int(db.execute(query).fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def at_work(spans: list[tuple[float, float]]) -> float:
    """Give how many seconds at least one of the batches was at work."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _opened(state: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{state}?mode=ro", uri=True)
