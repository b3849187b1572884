"""Intents to publish: what was begun, by which run, and whether that run is alive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.snapshots.publication import Intent, IntentStatus
from backfill_assets.state.counter import next_number
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import PROMOTIONS
from backfill_assets.state.versions import TableLockedError, check_kept

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta


_NO_HOLDER = ""
"""The holder of an intent that its run has let go of: any other may finish it."""


class PromotionPendingError(BackfillAssetsError):
    """A publication died half-way: its tables are closed until a process finishes it."""

    def __init__(self, intent: Intent, version: str) -> None:
        self.intent, self.plan_id, self.version = intent, intent.plan_id, version
        by = f" by {intent.holder}" if intent.holder else ""
        super().__init__(
            f"the {intent.kind.value} of plan {intent.plan_id} was begun{by} and never finished; table "
            f"{version} accepts no commits until then. Readers do not see the change. The next batch "
            f"or publication of this table finishes it, and so does `backfill {intent.kind.value} {intent.plan_id}`"
        )


class PromotionTakenOverError(BackfillAssetsError):
    """An intent is closed, or another run has taken it over."""

    def __init__(self, asked: Intent, found: Intent | None) -> None:
        self.asked, self.found = asked, found
        now = "unknown" if found is None else f"{found.status.value}, held by {found.holder},"
        super().__init__(
            f"the {asked.kind.value} of plan {asked.plan_id} is {now} now; expected it open and "
            f"held by {asked.holder}, which was silent for longer than the lease. This run did nothing "
            "more; see `backfill show`"
        )


def open_intents(connection: sa.Connection) -> list[Intent]:
    """Read the intents that were neither published nor withdrawn, in the order they were begun."""
    is_open = PROMOTIONS.c.status == IntentStatus.OPEN
    rows = connection.execute(sa.select(PROMOTIONS).where(is_open).order_by(PROMOTIONS.c.number))
    return [read_as(Intent, row) for row in rows]


def find_intent(connection: sa.Connection, number: int) -> Intent | None:
    """Read one intent, or None."""
    row = connection.execute(sa.select(PROMOTIONS).where(PROMOTIONS.c.number == number)).first()
    return None if row is None else read_as(Intent, row)


def intent(connection: sa.Connection, number: int) -> Intent:
    """Read one intent.

    Raises:
        RequestError: none has this number.
    """
    stored = find_intent(connection, number)
    if stored is None:
        raise RequestError(
            found=f"no intent to publish has number {number}",
            expected="the number of an intent that `begin_promotion` returned",
            do="Nothing was published",
        )
    return stored


def begin(connection: sa.Connection, intent: Intent, now: datetime, lease: timedelta) -> Intent:
    """Write an intent, or take over the same one from a holder that went silent.

    Raises:
        PromotionTakenOverError: one that was begun before is to go on, and is closed by now.
        TableLockedError: another live intent names one of its tables.
        PromotionPendingError: a dead one does.
        UnknownVersionError: no such version.
        VersionCollectingError: one of its tables is being deleted.
    """
    same = [each for each in open_intents(connection) if _same(each, intent)]
    if same:
        return _taken(connection, same[0], intent.holder, now, lease)
    if intent.number:
        raise PromotionTakenOverError(intent, find_intent(connection, intent.number))
    for version in intent.versions:
        check_kept(connection, version)
        check_closed(connection, version, None, now - lease)
    number = next_number(connection)
    begun = replace(intent, number=number, begun_at=now, heartbeat_at=now)
    connection.execute(
        sa.insert(PROMOTIONS).values({**values_of(begun), "steps": dict(begun.steps)})
    )
    return begun


def check_closed(
    connection: sa.Connection, version: str, holder: str | None, heard_after: datetime
) -> None:
    """Make sure that no open intent but the holder's own keeps a table closed.

    Batches of the holder's run are others: a copy that is in the log and not published yet would
    look to them like a commit that was never recorded.

    Args:
        connection: to the state.
        version: whose table.
        holder: a run, or a batch; None for one that has no intent yet.
        heard_after: a holder that was heard since then is alive.

    Raises:
        TableLockedError: a live one does.
        PromotionPendingError: a dead one does.
    """
    naming = [each for each in open_intents(connection) if version in each.versions]
    for each in naming:
        if each.holder == holder:
            continue
        if _is_live(each, heard_after):
            raise TableLockedError(version, _named(each), each.begun_at or heard_after)
        raise PromotionPendingError(each, version)


def note(
    connection: sa.Connection, intent: Intent, steps: Mapping[str, Any], now: datetime
) -> None:
    """Note how far a promotion got.

    Raises:
        PromotionTakenOverError: it is closed, or another run's by now.
    """
    check_held(connection, intent)
    _put(connection, intent.number, steps=dict(steps), heartbeat_at=now)


def withdraw(connection: sa.Connection, intent: Intent) -> Intent:
    """Close an intent of which nothing was copied.

    Returns:
        The intent, whose holder's locks are to be released.

    Raises:
        PromotionTakenOverError: it is closed, or another run's by now.
    """
    stored = check_held(connection, intent)
    _put(connection, intent.number, status=IntentStatus.WITHDRAWN)
    return stored


def let_go(connection: sa.Connection, intent: Intent) -> None:
    """Leave an open intent, whose run can't go on with it, to the next process that comes across it."""
    stored = find_intent(connection, intent.number)
    if stored and stored.status is IntentStatus.OPEN and stored.holder == intent.holder:
        _put(connection, intent.number, holder=_NO_HOLDER)


def finish(connection: sa.Connection, intent: Intent, published: int) -> None:
    """Close an intent that is published."""
    _put(connection, intent.number, status=IntentStatus.DONE, published=published)


def check_held(connection: sa.Connection, intent: Intent) -> Intent:
    """Read an intent that must be open and its holder's.

    Raises:
        PromotionTakenOverError: it is closed, or another run's by now.
    """
    stored = find_intent(connection, intent.number)
    if stored is None or stored.status is not IntentStatus.OPEN or stored.holder != intent.holder:
        raise PromotionTakenOverError(intent, stored)
    return stored


def refresh(connection: sa.Connection, run_id: str, now: datetime) -> None:
    """Refresh the heartbeat of a run's open intents."""
    own_intents = sa.update(PROMOTIONS).where(
        PROMOTIONS.c.holder == run_id, PROMOTIONS.c.status == IntentStatus.OPEN
    )
    connection.execute(own_intents.values(heartbeat_at=now))


def _same(intent: Intent, other: Intent) -> bool:
    return (intent.plan_id, intent.kind) == (other.plan_id, other.kind)


def _taken(
    connection: sa.Connection, intent: Intent, holder: str, now: datetime, lease: timedelta
) -> Intent:
    if intent.holder != holder and _is_live(intent, now - lease):
        raise TableLockedError(", ".join(intent.versions), _named(intent), intent.begun_at or now)
    _put(connection, intent.number, holder=holder, heartbeat_at=now)
    return replace(intent, holder=holder, heartbeat_at=now)


def _is_live(intent: Intent, heard_after: datetime) -> bool:
    if intent.holder == _NO_HOLDER or intent.heartbeat_at is None:
        return False
    return intent.heartbeat_at > heard_after


def _named(intent: Intent) -> str:
    return f"the {intent.kind.value} of plan {intent.plan_id} ({intent.holder})"


def _put(connection: sa.Connection, number: int, **values: object) -> None:
    connection.execute(sa.update(PROMOTIONS).where(PROMOTIONS.c.number == number).values(values))
