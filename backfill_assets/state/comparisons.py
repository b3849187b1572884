"""Comparisons that a plan rests on, as the state keeps them: each under the key of what it has read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.state.tables import COMPARISONS

if TYPE_CHECKING:
    from datetime import datetime


def keep_comparison(
    connection: sa.Connection, plan_id: str, key: str, found: str, now: datetime
) -> None:
    """Keep what a comparison has found; another one of the same files has found the same."""
    if comparison(connection, plan_id, key) is None:
        values = {"plan_id": plan_id, "key": key, "found": found, "at": now}
        connection.execute(sa.insert(COMPARISONS).values(**values))


def comparison(connection: sa.Connection, plan_id: str, key: str) -> str | None:
    """Read what a comparison has found; None where it was not made yet."""
    wanted = sa.select(COMPARISONS.c.found)
    mine = (COMPARISONS.c.plan_id == plan_id, COMPARISONS.c.key == key)
    return connection.execute(wanted.where(*mine)).scalar_one_or_none()
