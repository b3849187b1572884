"""What operations took, as the state keeps it: the last of them, for estimates of plans to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.timing import Timing
from backfill_assets.state.tables import TIMINGS

if TYPE_CHECKING:
    from datetime import datetime

_KEPT = 1000
_FIELDS = tuple(Timing.__dataclass_fields__)


def keep_timing(connection: sa.Connection, timing: Timing, now: datetime) -> None:
    """Keep what an operation took; only the last thousand stay."""
    last = sa.select(sa.func.coalesce(sa.func.max(TIMINGS.c.number), 0))
    number = connection.execute(last).scalar_one() + 1
    values = {name: getattr(timing, name) for name in _FIELDS}
    connection.execute(sa.insert(TIMINGS).values(number=number, at=now, **values))
    connection.execute(sa.delete(TIMINGS).where(TIMINGS.c.number <= number - _KEPT))


def timings(connection: sa.Connection, plan_id: str | None, limit: int | None) -> list[Timing]:
    """Read what operations took, the latest first.

    Args:
        connection: to the state.
        plan_id: only those of this plan; None for all.
        limit: how many at the most; None for any number.
    """
    wanted = sa.select(TIMINGS).order_by(TIMINGS.c.number.desc()).limit(limit)
    if plan_id is not None:
        wanted = wanted.where(TIMINGS.c.plan_id == plan_id)
    rows = connection.execute(wanted)
    return [Timing(**{name: getattr(row, name) for name in _FIELDS}) for row in rows]
