"""Owed work: cells that stay owed until a batch that began afterwards has rebuilt them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.state.cells import bounds, cell_of, reached
from backfill_assets.state.counter import next_number
from backfill_assets.state.tables import OWED, POINTERS

if TYPE_CHECKING:
    from backfill_assets.snapshots.batch import BatchCommit


def mark_owed(connection: sa.Connection, version: str, cells: IntervalSet, reason: str) -> None:
    """Remember that cells of a version must be rebuilt."""
    since = next_number(connection)
    rows = [
        {"version": version, "since": since, "reason": reason, **bounds(interval)}
        for interval in cells
    ]
    if rows:
        connection.execute(sa.insert(OWED), rows)


def owed(connection: sa.Connection, environment: str) -> dict[str, IntervalSet]:
    """Read the cells that are owed in the versions that an environment reads, by model."""
    wanted = (
        sa.select(POINTERS.c.model, OWED.c.starts, OWED.c.ends)
        .join(OWED, OWED.c.version == POINTERS.c.version)
        .where(POINTERS.c.environment == environment)
    )
    pairs: dict[str, list[tuple[int, int]]] = {}
    for row in connection.execute(wanted):
        pairs.setdefault(row.model, []).append((row.starts, row.ends))
    return {model: IntervalSet.of_pairs(each) for model, each in pairs.items()}


def settle_owed(connection: sa.Connection, commit: BatchCommit) -> None:
    """Strike off what a commit has rebuilt, unless it began before the cells were owed."""
    built = IntervalSet.of([commit.interval])
    where = sa.and_(
        OWED.c.version == commit.version,
        OWED.c.since < commit.built_at,
        reached(OWED, built),
    )
    rows = connection.execute(sa.select(OWED).where(where)).all()
    left = [
        {"version": row.version, "since": row.since, "reason": row.reason, **bounds(interval)}
        for row in rows
        for interval in IntervalSet.of([cell_of(row)]) - built
    ]
    connection.execute(sa.delete(OWED).where(where))
    if left:
        connection.execute(sa.insert(OWED), left)
