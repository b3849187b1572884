"""Limits: how many batches may be in flight at once, counted as live claims.

A slot has no row of its own. It is taken with a batch's claim, in the same transaction, and is freed
with it: when the batch ends, or when its process has been silent for longer than the lease.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted, first_of
from backfill_assets.snapshots.slots import (
    ALL,
    InFlightBatch,
    model_scope,
    plan_scope,
    scope_words,
)
from backfill_assets.snapshots.stored_plan import ENDS
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.cells import cell_of
from backfill_assets.state.plans import plan
from backfill_assets.state.rows import read_as
from backfill_assets.state.tables import BATCHES, CLAIMS, LIMITS, PLANS, SLOT_WAITERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from backfill_assets.snapshots.batch import BatchRequest
    from backfill_assets.state.database import Database

_SHOWN = 3
KEEPS_ITS_TURN = timedelta(seconds=10)
"""How long after its last look a batch that waits keeps its place in the order."""


class NoSlotError(BackfillAssetsError):
    """All slots of a limit are taken."""

    def __init__(
        self, scope: str, limit: int, holders: Sequence[InFlightBatch], ahead: int = 0
    ) -> None:
        self.scope, self.limit, self.holders, self.ahead = scope, limit, tuple(holders), ahead
        self.words = f"a slot of {scope_words(scope)}, where the limit is {limit}"
        shown = first_of(
            (f"{batch.batch_id} of {batch.model} (run {batch.run_id})" for batch in self.holders),
            _SHOWN,
        )
        waiting = f", and {ahead} waiting longer" if ahead else ""
        super().__init__(
            f"{counted(len(self.holders), 'batch', 'batches')} of {scope_words(scope)} in flight{': ' * bool(shown)}"
            f"{shown}{waiting}; expected fewer than {limit} together. Wait for one to end, or "
            "change the limit with `backfill limit`"
        )


class Limits(Aggregate[D]):
    """How many batches may be in flight at once, and which are.

    Each method is one transaction.
    """

    def by_scope(self) -> dict[str, int]:
        """Read the limits that are set, by scope."""
        return self._database.read(limits)

    def in_flight(self) -> tuple[InFlightBatch, ...]:
        """Read the batches that hold a slot now, the eldest first."""
        heard_after = self._clock() - self._lease
        return self._database.read(in_flight, heard_after)

    def waiting_since(self) -> tuple[datetime, ...]:
        """Read since when each batch waits that waits for a slot, the longest first."""
        at = SLOT_WAITERS.c
        query = sa.select(at.since).where(at.heard_at > self._clock() - KEEPS_ITS_TURN)
        return tuple(row.since for row in self._rows(query.order_by(at.since)))

    def set_limit(self: Limits[Database], scope: str, slots: int | None, who: str) -> None:
        """Set how many batches may be in flight at once, over all runs and processes.

        Batches that are in flight go on; the next one that is opened finds the new limit.

        Args:
            scope: ``all``, ``model:<name>`` or ``plan:<id>``.
            slots: how many; None removes the limit.
            who: the person who asks.

        Raises:
            RequestError: it is less than one.
            RequestError: the scope is none of the three.
            UnknownPlanError: there is no such plan.
        """
        if slots is not None and slots < 1:
            raise RequestError(
                found=f"the limit of {scope_words(scope)} can't be {slots}",
                expected="1 or more",
                do="To stop a plan, pause it with `backfill pause`",
            )
        kind, _, name = scope.partition(":")
        if scope != ALL and not (kind in ("model", "plan") and name):
            raise RequestError(
                found=f"'{scope}' has no limit",
                expected="'all', 'model:<name>' or 'plan:<id>'",
            )
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            of = plan_scope(plan(connection, name).plan_id) if kind == "plan" else scope
            connection.execute(sa.delete(LIMITS).where(LIMITS.c.scope == of))
            if slots is not None:
                values = {"scope": of, "slots": slots, "set_by": who, "set_at": now}
                connection.execute(sa.insert(LIMITS).values(values))

        self._database.write(work)


def limits(connection: sa.Connection) -> dict[str, int]:
    """Read the limits that are set, by scope."""
    rows = connection.execute(sa.select(LIMITS).order_by(LIMITS.c.scope))
    return {row.scope: row.slots for row in rows}


def forget_over(connection: sa.Connection) -> None:
    """Forget the limits of plans that have ended."""
    ended = sa.select(PLANS.c.plan_id).where(PLANS.c.status.in_(ENDS))
    scopes = [plan_scope(plan_id) for plan_id in connection.execute(ended).scalars()]
    over = LIMITS.c.scope == sa.bindparam("of")
    if scopes:
        connection.execute(sa.delete(LIMITS).where(over), [{"of": scope} for scope in scopes])


def forget_silent(connection: sa.Connection, heard_after: datetime) -> None:
    """Forget batches that wait for no slot any more: their processes have died."""
    connection.execute(sa.delete(SLOT_WAITERS).where(SLOT_WAITERS.c.heard_at <= heard_after))


def in_flight(connection: sa.Connection, heard_after: datetime) -> tuple[InFlightBatch, ...]:
    """Read the batches that hold a slot, the eldest first."""
    query = (
        sa.select(CLAIMS, BATCHES.c.plan_id)
        .join(BATCHES, BATCHES.c.batch_id == CLAIMS.c.batch_id, isouter=True)
        .where(CLAIMS.c.heartbeat_at > heard_after, CLAIMS.c.moved.is_(False))
        .order_by(CLAIMS.c.claimed_at, CLAIMS.c.batch_id)
    )
    claims = groupby(connection.execute(query), key=lambda row: row.batch_id)
    return tuple(_in_flight([*rows]) for _, rows in claims)


def check_slots(
    connection: sa.Connection, request: BatchRequest, now: datetime, lease: timedelta
) -> None:
    """Make sure that a batch, whose claim is written, finds a slot in each of its limits.

    Raises:
        NoSlotError: other batches hold all slots of one of them, or have waited for them longer.
    """
    heard_after = now - lease
    others = [
        batch for batch in in_flight(connection, heard_after) if batch.batch_id != request.batch_id
    ]
    ahead = _ahead(connection, request.batch_id, now)
    for scope, limit, holders in _limited(request, limits(connection), others):
        if len(holders) + ahead[scope] >= limit:
            raise NoSlotError(scope, limit, holders, ahead[scope])


def _ahead(connection: sa.Connection, batch_id: str, now: datetime) -> Counter[str]:
    """Count by limit the batches that have waited longer; all, if this one has not waited yet."""
    waiters = SLOT_WAITERS.c
    live = sa.select(SLOT_WAITERS).where(waiters.heard_at > now - KEEPS_ITS_TURN)
    rows = connection.execute(live.order_by(waiters.since, waiters.batch_id)).all()
    ids = [row.batch_id for row in rows]
    elder = rows[: ids.index(batch_id)] if batch_id in ids else rows
    return Counter(row.scope for row in elder)


def _limited(
    request: BatchRequest, by_scope: dict[str, int], others: Sequence[InFlightBatch]
) -> Iterator[tuple[str, int, list[InFlightBatch]]]:
    """Yield each limit of a batch, the narrowest first, with the batches that count there."""
    if request.plan_id is not None:
        scope = plan_scope(request.plan_id)
        if scope in by_scope:
            yield (
                scope,
                by_scope[scope],
                [batch for batch in others if batch.plan_id == request.plan_id],
            )
    scope = model_scope(request.model)
    if limit := by_scope.get(scope, request.slots.model):
        yield scope, limit, [batch for batch in others if batch.model == request.model]
    if limit := by_scope.get(ALL, request.slots.overall):
        yield ALL, limit, list(others)


def _in_flight(claims: Sequence[sa.Row[Any]]) -> InFlightBatch:
    first, cells = claims[0], IntervalSet.of(map(cell_of, claims))
    return read_as(InFlightBatch, first, stretches=cells, since=first.claimed_at)
