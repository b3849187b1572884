"""Turns: a batch that waits for a slot gets it before batches that came later.

Otherwise a long run would hand each slot that it frees to its own next batch, and no other run would ever
find one. A turn is an order, not a hold: a run that is not heard of for some seconds has lost it, and in
a limit only those batches count that wait for that very limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.state.limits import NoSlotError
from backfill_assets.state.opening import open_batch
from backfill_assets.state.tables import SLOT_WAITERS

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch


def open_in_turn(
    connection: sa.Connection, request: BatchRequest, now: datetime, lease: timedelta
) -> OpenBatch | BackfillAssetsError:
    """Open a batch, or remember that it waits for a slot; return the error that keeps it from opening.

    The error is not raised, so that the place in the order is kept and nothing else.
    """
    try:
        with connection.begin_nested():
            opened = open_batch(connection, request, now, lease)
    except NoSlotError as error:
        _wait(connection, request.batch_id, error.scope, now)
        return error
    except BackfillAssetsError as error:
        _leave(connection, request.batch_id)
        return error
    _leave(connection, request.batch_id)
    return opened


def _wait(connection: sa.Connection, batch_id: str, scope: str, now: datetime) -> None:
    waiter = SLOT_WAITERS.c.batch_id == batch_id
    heard = sa.update(SLOT_WAITERS).where(waiter).values(scope=scope, heard_at=now)
    if not connection.execute(heard).rowcount:
        values = {"batch_id": batch_id, "scope": scope, "since": now, "heard_at": now}
        connection.execute(sa.insert(SLOT_WAITERS).values(values))


def _leave(connection: sa.Connection, batch_id: str) -> None:
    connection.execute(sa.delete(SLOT_WAITERS).where(SLOT_WAITERS.c.batch_id == batch_id))
