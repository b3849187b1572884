"""Plans in the queue, and whether their batches may be opened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.snapshots.queued_plan import Control, QueuedPlan
from backfill_assets.snapshots.stored_plan import NOT_ENDED, OPEN, PlanStatus
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.plans import NewEvent, plan, tell, wrong_status
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import PLANS, QUEUED_PLANS

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.state.database import Database

# A paused plan may be stopped, and one that was stopped may still be cancelled: never the other way round.
_REFUSED = {
    Control.PAUSED: (Control.PAUSED,),
    Control.STOPPED: (Control.PAUSED, Control.STOPPED),
    Control.CANCELLED: (Control.PAUSED, Control.STOPPED, Control.CANCELLED),
}


class PlanPausedOrStoppedError(BackfillAssetsError):
    """A plan is paused or stopped: no batch of it is opened."""

    def __init__(self, plan_id: str, control: Control) -> None:
        self.plan_id, self.control = plan_id, control
        self.words = f"plan {plan_id}, which is {control.words}"
        super().__init__(
            f"plan {plan_id} is {control.words}; expected a plan that is not held. Cells already built are kept; "
            f"{_way_on(plan_id, control)} continues it, `backfill abandon {plan_id}` ends it"
        )


def _plan_held_already(plan_id: str, current: Control, new: Control) -> RequestError:
    stands = f"{current.words} already"
    if current.words != new.words:
        stands = f"{stands}, so it can't be {new.words}"
    return RequestError(
        found=f"plan {plan_id} is {stands}",
        expected="a plan that is not held",
        do=f"Nothing was changed; {_way_on(plan_id, current)} continues it",
    )


def _way_on(plan_id: str, control: Control) -> str:
    """Name the commands that let a held plan go on: one that is stopped has left the queue, and its run has ended."""
    resume = f"`backfill resume {plan_id}`"
    return resume if control is Control.PAUSED else f"{resume}, then `backfill apply {plan_id}`,"


class Queue(Aggregate[D]):
    """Which plans the queue has, and which are held.

    Each method is one transaction.
    """

    def queued_plans(self) -> tuple[QueuedPlan, ...]:
        """Read what is known of the plans that are not over, those in the queue first.

        A plan that was never queued is among them once it was paused or stopped.
        """
        query = (
            sa.select(QUEUED_PLANS)
            .join(PLANS, PLANS.c.plan_id == QUEUED_PLANS.c.plan_id)
            .where(PLANS.c.status.in_(NOT_ENDED))
        )
        plans = (read_as(QueuedPlan, row) for row in self._rows(query))
        return tuple(sorted(plans, key=_place))

    def control_of(self, plan_id: str) -> Control:
        """Read whether a plan's batches may be opened; one that is over is not held any more."""
        return self._database.read(control_of, plan_id)

    def queue_plan(
        self: Queue[Database], plan_id: str, who: str, off_peak: str | None = None
    ) -> QueuedPlan:
        """Release a plan to the run queue from now on; again changes only its window.

        Raises:
            UnknownPlanError: there is no such plan.
            RequestError: it has not begun, or its life is over.
            PlanPausedOrStoppedError: it is stopped.
        """
        now = self._clock()

        def work(connection: sa.Connection) -> QueuedPlan:
            queued = _known_plan(connection, plan_id, OPEN)
            if queued.control in (Control.STOPPED, Control.CANCELLED):
                raise PlanPausedOrStoppedError(queued.plan_id, queued.control)
            since = queued.queued_at or now
            changed = replace(queued, off_peak=off_peak, set_by=who, set_at=now, queued_at=since)
            return _put(connection, changed)

        return self._database.write(work)

    def control_plan(
        self: Queue[Database], plan_id: str, control: Control, who: str, why: str = ""
    ) -> QueuedPlan:
        """Pause or stop a plan, or let it go on; whether it is queued or applied by hand.

        Its history tells it.

        Raises:
            UnknownPlanError: there is no such plan.
            RequestError: its life is over.
            RequestError: it is paused or stopped already.
            RequestError: it is neither, and is to go on.
        """
        now = self._clock()

        def work(connection: sa.Connection) -> QueuedPlan:
            queued = _known_plan(connection, plan_id, NOT_ENDED)
            if control is Control.RUNNING and not queued.control.holds:
                raise RequestError(
                    found=f"plan {queued.plan_id} is neither paused nor stopped",
                    expected="a paused or stopped plan",
                    do=f"Nothing was changed; look at it with `backfill show {queued.plan_id}`",
                )
            if control in _REFUSED.get(queued.control, ()):
                raise _plan_held_already(queued.plan_id, queued.control, control)
            leaves = control in (Control.STOPPED, Control.CANCELLED)
            since = None if leaves else queued.queued_at
            changed = replace(queued, control=control, set_by=who, set_at=now, queued_at=since)
            tell(connection, NewEvent(queued.plan_id, control.event, who, why), now)
            return _put(connection, changed)

        return self._database.write(work)


def _place(queued: QueuedPlan) -> tuple[bool, datetime, str]:
    """Order plans in the queue by age, before those that are not in it."""
    return queued.queued_at is None, queued.queued_at or queued.set_at, queued.plan_id


def control_of(connection: sa.Connection, plan_id: str) -> Control:
    """Read whether a plan's batches may be opened; one that is over is not held any more."""
    query = (
        sa.select(QUEUED_PLANS.c.control)
        .join(PLANS, PLANS.c.plan_id == QUEUED_PLANS.c.plan_id)
        .where(
            QUEUED_PLANS.c.plan_id == plan_id,
            PLANS.c.status.in_(NOT_ENDED),
        )
    )
    return connection.execute(query).scalar_one_or_none() or Control.RUNNING


def check_control(connection: sa.Connection, plan_id: str | None) -> None:
    """Make sure that batches of a plan may be opened.

    Raises:
        PlanPausedOrStoppedError: it is paused or stopped.
    """
    if plan_id is None:
        return
    control = control_of(connection, plan_id)
    if control.holds:
        raise PlanPausedOrStoppedError(plan_id, control)


def _known_plan(
    connection: sa.Connection, plan_id: str, expected: tuple[PlanStatus, ...]
) -> QueuedPlan:
    """Read what is known of a plan; one that was neither paused nor stopped goes on."""
    kept = plan(connection, plan_id)
    if kept.status not in expected:
        raise wrong_status(kept.plan_id, kept.status, expected)
    query = sa.select(QUEUED_PLANS).where(QUEUED_PLANS.c.plan_id == kept.plan_id)
    row = connection.execute(query).first()
    if row is not None:
        return read_as(QueuedPlan, row)
    return QueuedPlan(kept.plan_id, Control.RUNNING, None, kept.created_by, kept.created_at, None)


def _put(connection: sa.Connection, queued: QueuedPlan) -> QueuedPlan:
    connection.execute(sa.delete(QUEUED_PLANS).where(QUEUED_PLANS.c.plan_id == queued.plan_id))
    connection.execute(sa.insert(QUEUED_PLANS).values(values_of(queued)))
    return queued
