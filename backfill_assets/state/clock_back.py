"""Heartbeats from the future: left by a process that died before the clock was set back.

They would keep a dead holder's cells, tables and turn for as long as the clock was ahead. So they count as
heard just now: a living holder beats again, a dead one lapses within the lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.state.tables import CLAIMS, COMMIT_LOCKS, PROMOTIONS, SLOT_WAITERS

if TYPE_CHECKING:
    from datetime import datetime, timedelta


def bring_back(connection: sa.Connection, now: datetime, lease: timedelta) -> None:
    """Set heartbeats that are more than a lease in the future to now.

    Clocks of two machines that differ by less change nothing.
    """
    heard = (
        *(table.c.heartbeat_at for table in (CLAIMS, COMMIT_LOCKS, PROMOTIONS)),
        SLOT_WAITERS.c.heard_at,
    )
    for at in heard:
        connection.execute(sa.update(at.table).where(at > now + lease).values({at: now}))
