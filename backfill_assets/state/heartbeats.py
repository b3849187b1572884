"""Set heartbeats right that do not tell whether their holder lives.

Those from the future were left by a process that died before the clock was set back: they would keep its
cells, tables and turn for as long as the clock was ahead. So they count as heard just now: a living holder
beats again, a dead one lapses within the lease. Those of holders that could not beat, since a long transaction
kept the database from them, count as heard at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.state.tables import CLAIMS, COMMIT_LOCKS, PROMOTIONS, SLOT_WAITERS

if TYPE_CHECKING:
    from datetime import datetime, timedelta

_HEARD = (
    *(table.c.heartbeat_at for table in (CLAIMS, COMMIT_LOCKS, PROMOTIONS)),
    SLOT_WAITERS.c.heard_at,
)


def bring_back(connection: sa.Connection, now: datetime, lease: timedelta) -> None:
    """Set heartbeats that are more than a lease in the future to now.

    Clocks of two machines that differ by less change nothing.
    """
    for at in _HEARD:
        connection.execute(sa.update(at.table).where(at > now + lease).values({at: now}))


def pass_over(connection: sa.Connection, begun: datetime, now: datetime, lease: timedelta) -> None:
    """Let whatever was alive when a long transaction began be alive at its end: its time counts for no holder.

    A holder that is silent for longer than that goes on ageing: a short transaction keeps no dead one alive.
    """
    if now - begun < lease / 10:
        return
    for at in _HEARD:
        was_alive = sa.and_(at > begun - lease, at < now)
        connection.execute(sa.update(at.table).where(was_alive).values({at: now}))
