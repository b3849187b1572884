"""The outbox: which events of plans consumers are told of, over which channels, and what became of it.

An event of a plan is written in the transaction of what happened; the outbox is filled from these events, so
no notice is lost with a process, and none is sent within a publication.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.notice import Notice
from backfill_assets.snapshots.stored_plan import PlanEvent
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import insert_all, read_as, values_of
from backfill_assets.state.tables import NOTICES, PLAN_EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.state.database import Database

_KEY = (NOTICES.c.plan_id, NOTICES.c.number, NOTICES.c.consumer, NOTICES.c.channel)
_NOT_ADDRESSED = ""  # the row of an event itself: due until it is known whom the event concerns


class Notices(Aggregate[D]):
    """Notices to consumers. Each method is one transaction."""

    def unsent(self, events: Iterable[str]) -> list[PlanEvent]:
        """Read the events of these names that are not in the outbox yet, the earliest first."""
        at = PLAN_EVENTS.c
        in_outbox = sa.exists().where(
            NOTICES.c.plan_id == at.plan_id, NOTICES.c.number == at.number
        )
        query = sa.select(PLAN_EVENTS).where(at.event.in_([*events]), ~in_outbox)
        return [read_as(PlanEvent, row) for row in self._rows(query.order_by(at.at, at.number))]

    def due(self, now: datetime) -> list[Notice]:
        """Read the notices that are to be tried at an instant (UTC), the earliest first."""
        return self._read(NOTICES.c.next_at <= now)

    def latest(self, limit: int, plan_id: str | None = None) -> list[Notice]:
        """Read notices, the latest event last; and events whose consumers could not be found out.

        Args:
            limit: how many of the latest; those that are still to be delivered are there besides.
            plan_id: only those of this plan.
        """
        of_plan = sa.true() if plan_id is None else NOTICES.c.plan_id == plan_id
        shown = (NOTICES.c.consumer != _NOT_ADDRESSED) | (NOTICES.c.error != "")
        found = self._read(shown & of_plan)
        first = len(found) - limit
        return [
            each for place, each in enumerate(found) if place >= first or each.next_at is not None
        ]

    def put(self: Notices[Database], event: PlanEvent) -> None:
        """Put an event into the outbox, once: a notice without a consumer, which is due now."""
        now = self._clock()
        of = values_of(event, "plan_id", "number", "event")
        notice = Notice(**of, consumer=_NOT_ADDRESSED, channel="", asked_at=now, next_at=now)

        def work(connection: sa.Connection) -> None:
            if connection.execute(sa.select(NOTICES.c.number).where(_of_event(notice))).first():
                return
            connection.execute(sa.insert(NOTICES).values(values_of(notice)))

        self._database.write(work)

    def address(self: Notices[Database], notice: Notice, told: Iterable[tuple[str, str]]) -> None:
        """Put the notices of an event into the outbox, once it is known whom it concerns; they are due now.

        Args:
            notice: that of the event, without a consumer.
            told: consumers and channels; none: the event concerns no consumer.
        """
        now = self._clock()
        rows = [
            values_of(
                replace(
                    notice,
                    consumer=consumer,
                    channel=channel,
                    asked_at=now,
                    next_at=now,
                    attempts=0,
                    error="",
                )
            )
            for consumer, channel in dict.fromkeys(told)
        ]

        def work(connection: sa.Connection) -> None:
            due = (
                _of_event(notice)
                & (NOTICES.c.consumer == _NOT_ADDRESSED)
                & NOTICES.c.next_at.is_not(None)
            )
            done = sa.update(NOTICES).where(due).values(next_at=None, error="")
            if connection.execute(done).rowcount:
                insert_all(connection, NOTICES, rows)

        self._database.write(work)

    def delivered(self: Notices[Database], notice: Notice) -> None:
        """Note that a notice was delivered."""
        done = replace(notice, attempts=notice.attempts + 1, next_at=None, error="")
        self._keep(replace(done, delivered_at=self._clock()))

    def failed(
        self: Notices[Database], notice: Notice, error: str, next_at: datetime | None
    ) -> None:
        """Note that an attempt failed, and when the next one is (UTC); None gives the notice up."""
        tried = replace(notice, attempts=notice.attempts + 1, next_at=next_at, error=error)
        self._keep(tried)

    def _keep(self: Notices[Database], notice: Notice) -> None:
        key = (notice.plan_id, notice.number, notice.consumer, notice.channel)
        same = sa.and_(*(column == value for column, value in zip(_KEY, key, strict=True)))
        values = values_of(notice, "attempts", "next_at", "delivered_at", "error")
        changed = sa.update(NOTICES).where(same).values(values)
        self._database.write(lambda connection: connection.execute(changed))

    def _read(self, condition: sa.ColumnElement[bool]) -> list[Notice]:
        query = sa.select(NOTICES).where(condition).order_by(NOTICES.c.asked_at, *_KEY)
        return [read_as(Notice, row) for row in self._rows(query)]


def _of_event(notice: Notice) -> sa.ColumnElement[bool]:
    return (NOTICES.c.plan_id == notice.plan_id) & (NOTICES.c.number == notice.number)
