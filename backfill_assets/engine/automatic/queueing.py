"""Give a plan to the run queue: from then on the sensor releases it, batch by batch.

All that `apply` does before its first batch is done here, so whoever carries a part of the plan finds
its workspace open; and `apply` itself goes on from here just as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.apply import begin, publishes_nothing
from backfill_assets.engine.plans.workspace import open_workspace
from backfill_assets.planning.queue.off_peak import read_off_peak
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.state.queue import PlanHeldError

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.snapshots.queued_plan import QueuedPlan


def queue_plan(op: Operation, off_peak: str | None = None) -> QueuedPlan:
    """Queue a plan; one that is in the queue stays there, and only its window is changed.

    Args:
        op: somebody's operation on the plan.
        off_peak: the window in which it is released, such as ``22:00-06:00 Europe/Berlin``; None for
            any time.

    Raises:
        InvalidOffPeakError: the window can't be read.
        UnknownZoneError: nor its time zone.
        PlanHeldError: the plan is stopped.
        RequestError: it is too old.
        RequestError: it is not the plan that the state keeps under its id.
        RequestError: it is promoted, abandoned or taken back already.
        RequestError: a model was edited since.
        StalePlanError: cells or columns that it reads or rewrites have moved.
        PlanConflictError: another plan is at work on the same cells.
    """
    window = None if off_peak is None else str(read_off_peak(off_peak))
    control = op.store.queue.control_of(op.plan_id)
    if control in (Control.STOPPED, Control.CANCELLED):
        raise PlanHeldError(op.plan_id, control)
    begin(op)
    if not publishes_nothing(op.plan):
        open_workspace(op, op.environment())
    queued = op.store.queue.queue_plan(op.plan_id, op.who, window)
    op.tell("queued", off_peak=window)
    return queued
