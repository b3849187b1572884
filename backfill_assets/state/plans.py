"""Plans as the state keeps them: their events, timings, and the comparisons they rest on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.stored_plan import (
    ENDS,
    PlanEvent,
    PlanEventKind,
    PlanStatus,
    StoredPlan,
)
from backfill_assets.snapshots.timing import Timing
from backfill_assets.state import evidence
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.database import Database, StateBusyError, StateUnavailableError
from backfill_assets.state.rows import next_of, read_as, values_of
from backfill_assets.state.tables import BATCHES, COMPARISONS, PLAN_EVENTS, PLANS, TIMINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

_NAMED = sa.select(PLANS).where(PLANS.c.plan_id == sa.bindparam("named"))
_LISTED = 5
_TIMINGS_KEPT = 1000


class UnknownPlanError(BackfillAssetsError):
    """No plan has this id, nor an id that begins with it."""

    def __init__(self, plan_id: str, known: tuple[str, ...]) -> None:
        self.plan_id, self.known = plan_id, known
        latest = f"the latest are {', '.join(known)}" if known else "there is none yet"
        super().__init__(
            f"plan '{plan_id}' is not in the state; {latest}. Name one of them, or make a plan with "
            "`backfill plan`"
        )


def _ambiguous_plan(plan_id: str, plan_ids: tuple[str, ...]) -> RequestError:
    return RequestError(
        found=f"'{plan_id}' matches several plans: {', '.join(plan_ids)}",
        expected="the beginning of exactly one plan id",
        do="Write more characters of the id",
    )


def wrong_status(
    plan_id: str, current: PlanStatus, expected: tuple[PlanStatus, ...]
) -> RequestError:
    """Say where a plan stands, and where the caller expected it."""
    return RequestError(
        found=f"plan {plan_id} is {current.value}",
        expected=" or ".join(status.value for status in expected),
        do=f"Look at it with `backfill show {plan_id}`",
    )


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event of a plan, before it has its number."""

    plan_id: str
    event: PlanEventKind
    who: str
    why: str
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Plans(Aggregate[D]):
    """Plans: what was proposed, where each stands, what happened to it, and what it rests on.

    Each method is one transaction.
    """

    def get(self, plan_id: str) -> StoredPlan:
        """Read a plan by its id, or by any beginning of it that only one plan has.

        Raises:
            UnknownPlanError: none begins with it; the latest are named.
            RequestError: several do.
        """
        exact = self._row(_NAMED.params(named=plan_id))
        return self._database.read(plan, plan_id) if exact is None else _plan(exact)

    def latest(
        self, environment: str | None = None, statuses: Iterable[PlanStatus] | None = None
    ) -> list[StoredPlan]:
        """Read plans, the latest first.

        Args:
            environment: only of this one.
            statuses: only those that stand there.
        """
        chosen = None if statuses is None else tuple(statuses)
        return self._database.read(plans, environment, chosen)

    def events(self, plan_id: str) -> list[PlanEvent]:
        """Read what happened to a plan, from the first."""
        query = sa.select(PLAN_EVENTS).where(PLAN_EVENTS.c.plan_id == plan_id)
        return [read_as(PlanEvent, row) for row in self._rows(query.order_by(PLAN_EVENTS.c.number))]

    def begun_and_not_ended(
        self, begun: PlanEventKind, ended: PlanEventKind, status: PlanStatus
    ) -> list[str]:
        """Read the ids of the plans of a status to which one event came after the last of another.

        Args:
            begun: the event that has to be there.
            ended: the event that must not have come after it.
            status: where the plans stand.
        """
        since, until = _last(begun), sa.func.coalesce(_last(ended), 0)
        query = sa.select(PLANS.c.plan_id).where(PLANS.c.status == status, since > until)
        return [row.plan_id for row in self._rows(query.order_by(PLANS.c.plan_id))]

    def opened(self, environment: str, but_for: str) -> int:
        """Count the plans of an environment that were ever applied or queued.

        Args:
            environment: which.
            but_for: who has opened those that are not counted.
        """
        events = PLAN_EVENTS.c
        of_environment = PLANS.c.environment == environment
        query = (
            sa.select(sa.func.count().label("opened"))
            .join_from(PLAN_EVENTS, PLANS, PLANS.c.plan_id == events.plan_id)
            .where(of_environment, events.event == PlanEventKind.APPLYING, events.who != but_for)
        )
        [row] = self._rows(query)
        return row.opened

    def steps(self, plan_id: str) -> list[datetime]:
        """Read when something was done for a plan (UTC), the earliest first: its events, and its batches."""
        instants = (
            (PLAN_EVENTS.c.at, PLAN_EVENTS.c.plan_id),
            (BATCHES.c.started_at, BATCHES.c.plan_id),
            (BATCHES.c.finished_at, BATCHES.c.plan_id),
        )
        every = sa.union(
            *(
                sa.select(at.label("at")).where(of == plan_id, at.is_not(None))
                for at, of in instants
            )
        ).subquery()
        return [row.at for row in self._rows(sa.select(every.c.at).order_by(every.c.at))]

    def spared(self, since: datetime) -> dict[str, int]:
        """Count, by model, the planned cells that were not built, since what they read came out equal."""
        events = PLAN_EVENTS.c
        query = sa.select(events.plan_id, events.detail).where(
            events.event == PlanEventKind.BUILT, events.at >= since
        )
        rows = self._rows(query.order_by(events.plan_id, events.number))
        last = {row.plan_id: row.detail.get("spared", {}) for row in rows}
        by_model: dict[str, int] = {}
        for counts in last.values():
            for model, count in counts.items():
                by_model[model] = by_model.get(model, 0) + int(count)
        return by_model

    def timings(self, plan_id: str | None = None, *, limit: int | None = None) -> list[Timing]:
        """Read what the last runs, applies and promotions took, the latest first.

        Args:
            plan_id: only those of this plan.
            limit: how many at the most.
        """
        query = sa.select(TIMINGS).order_by(TIMINGS.c.number.desc()).limit(limit)
        if plan_id is not None:
            query = query.where(TIMINGS.c.plan_id == plan_id)
        return [read_as(Timing, row) for row in self._rows(query)]

    def comparison(self, plan_id: str, key: str) -> str | None:
        """Read what a comparison of a plan has found; None where it was not made yet."""
        return self._database.read(comparison, plan_id, key)

    def comparisons(self, plan_id: str, until: datetime) -> list[str]:
        """Read what all comparisons of a plan have found until an instant (UTC), the earliest first."""
        query = sa.select(COMPARISONS.c.found).where(
            COMPARISONS.c.plan_id == plan_id, COMPARISONS.c.at <= until
        )
        rows = self._rows(query.order_by(COMPARISONS.c.at, COMPARISONS.c.key))
        return [row.found for row in rows]

    def save_plan(self: Plans[Database], plan: StoredPlan, told: NewEvent | None = None) -> None:
        """Keep a plan; the same one saved again stays as it is, its status too.

        Args:
            plan: the plan.
            told: what its history tells of it.

        Raises:
            RequestError: another content is kept under its id.
        """
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            stored = find_plan(connection, plan.plan_id)
            if stored is None:
                connection.execute(sa.insert(PLANS).values(values_of(plan)))
            elif stored.content_hash != plan.content_hash:
                raise RequestError(
                    found=f"another plan is kept as '{plan.plan_id}' already, with other content; an "
                    "id is derived from the content, so one of the two was edited",
                    do="Run `backfill plan` again",
                )
            if told is not None:
                tell(connection, told, now)

        self._database.write(work)

    def set_plan_status(
        self: Plans[Database],
        plan_id: str,
        expected: PlanStatus | Iterable[PlanStatus],
        new: PlanStatus,
        told: NewEvent | None = None,
    ) -> None:
        """Move a plan's status on, if it still stands where the caller believes.

        Args:
            plan_id: the plan.
            expected: where it stands.
            new: where it stands from now on.
            told: what its history tells of it.

        Raises:
            UnknownPlanError: there is no such plan.
            RequestError: it stands elsewhere.
        """
        allowed = (expected,) if isinstance(expected, str) else tuple(expected)
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            stored = plan(connection, plan_id)
            if stored.status not in allowed:
                raise wrong_status(plan_id, stored.status, allowed)
            put_status(connection, plan_id, new, now)
            if told is not None:
                tell(connection, told, now)

        self._database.write(work)

    def tell(
        self: Plans[Database],
        plan_id: str,
        event: PlanEventKind,
        *,
        who: str,
        why: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> PlanEvent:
        """Add to the history of a plan.

        Raises:
            UnknownPlanError: there is no such plan.
        """
        added = NewEvent(plan_id, event, who, why, detail or {})
        now = self._clock()
        return self._database.write(tell, added, now)

    def keep_timing(self: Plans[Database], timing: Timing) -> None:
        """Keep what an operation took; only the last thousand stay.

        Only estimates use it, so a state that can't be written now is no failure of an operation
        that is done.
        """
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            number = next_of(connection, TIMINGS.c.number)
            values = {**values_of(timing), "number": number, "at": now}
            connection.execute(sa.insert(TIMINGS).values(values))
            connection.execute(sa.delete(TIMINGS).where(TIMINGS.c.number <= number - _TIMINGS_KEPT))

        with suppress(StateBusyError, StateUnavailableError):
            self._database.write(work)

    def keep_comparison(self: Plans[Database], plan_id: str, key: str, found: str) -> None:
        """Keep what a comparison of a plan has found, under a key of all that it has read.

        Another one of the same files has found the same. If the state can't be written now, the
        comparison is made once more.
        """
        values = {"plan_id": plan_id, "key": key, "found": found, "at": self._clock()}

        def work(connection: sa.Connection) -> None:
            if comparison(connection, plan_id, key) is None:
                connection.execute(sa.insert(COMPARISONS).values(values))

        with suppress(StateBusyError, StateUnavailableError):
            self._database.write(work)


def plan(connection: sa.Connection, plan_id: str) -> StoredPlan:
    """Read a plan by its id, or by any beginning of it that only one plan has.

    Raises:
        UnknownPlanError: none begins with it.
        RequestError: several do.
    """
    exact = find_plan(connection, plan_id)
    if exact is not None:
        return exact
    begins = PLANS.c.plan_id.startswith(plan_id, autoescape=True) if plan_id else sa.false()
    rows = connection.execute(_latest().where(begins)).all()
    if len(rows) > 1:
        raise _ambiguous_plan(plan_id, tuple(row.plan_id for row in rows[:_LISTED]))
    if not rows:
        latest = connection.execute(_latest().limit(_LISTED))
        raise UnknownPlanError(plan_id, tuple(row.plan_id for row in latest))
    return _plan(rows[0])


def find_plan(connection: sa.Connection, plan_id: str) -> StoredPlan | None:
    """Read a plan by its whole id, or None."""
    row = connection.execute(_NAMED, {"named": plan_id}).first()
    return None if row is None else _plan(row)


def plans(
    connection: sa.Connection, environment: str | None, statuses: tuple[PlanStatus, ...] | None
) -> list[StoredPlan]:
    """Read plans, the latest first."""
    query = _latest()
    if environment is not None:
        query = query.where(PLANS.c.environment == environment)
    if statuses is not None:
        query = query.where(PLANS.c.status.in_(statuses))
    return [_plan(row) for row in connection.execute(query)]


def put_status(connection: sa.Connection, plan_id: str, new: PlanStatus, now: datetime) -> None:
    """Write a plan's status; one that ends it makes it owe evidence."""
    moved = sa.update(PLANS).where(PLANS.c.plan_id == plan_id)
    connection.execute(moved.values(status=new))
    if new in ENDS:
        evidence.owe(connection, plan_id, new.value, now)


def tell(connection: sa.Connection, added: NewEvent, now: datetime) -> PlanEvent:
    """Add to the history of a plan.

    Raises:
        UnknownPlanError: there is no such plan.
    """
    plan_id = plan(connection, added.plan_id).plan_id
    number = next_of(connection, PLAN_EVENTS.c.number, PLAN_EVENTS.c.plan_id == plan_id)
    event = PlanEvent(plan_id, number, now, added.event, added.who, added.why, dict(added.detail))
    connection.execute(sa.insert(PLAN_EVENTS).values(values_of(event)))
    return event


def _last(event: PlanEventKind) -> sa.ScalarSelect[int]:
    """Give the number of a plan's last event of a name."""
    own = PLAN_EVENTS.c.plan_id == PLANS.c.plan_id, PLAN_EVENTS.c.event == event
    return (
        sa.select(sa.func.max(PLAN_EVENTS.c.number)).where(*own).correlate(PLANS).scalar_subquery()
    )


def _latest() -> sa.Select[Any]:
    return sa.select(PLANS).order_by(PLANS.c.created_at.desc(), PLANS.c.plan_id)


def _plan(row: sa.Row[Any]) -> StoredPlan:
    return read_as(StoredPlan, row, cells=CellsByModel(row.cells))


def comparison(connection: sa.Connection, plan_id: str, key: str) -> str | None:
    """Read what a comparison has found; None where it was not made yet."""
    query = sa.select(COMPARISONS.c.found)
    mine = (COMPARISONS.c.plan_id == plan_id, COMPARISONS.c.key == key)
    return connection.execute(query.where(*mine)).scalar_one_or_none()
