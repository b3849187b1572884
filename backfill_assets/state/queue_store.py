"""Limits and the queue: what the store answers and writes of them; each is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.state import limits, queued
from backfill_assets.state.plan_store import PlanStore

if TYPE_CHECKING:
    from backfill_assets.snapshots.queued_plan import Control, QueuedPlan
    from backfill_assets.snapshots.slots import InFlightBatch


class QueueStore(PlanStore):
    """How many batches run at once, which plans the queue has, and which are held; see `Store`."""

    def set_limit(self, scope: str, slots: int | None, who: str) -> None:
        """Set how many batches may be in flight at once, over all runs and processes.

        Batches that are in flight go on; the next one that is opened finds the new limit.

        Args:
            scope: ``all``, ``model:<name>`` or ``plan:<id>``.
            slots: how many; None takes away what was set.
            who: the person who asks.

        Raises:
            RequestError: it is less than one.
            RequestError: the scope is none of the three.
            UnknownPlanError: there is no such plan.
        """
        now = self._clock()
        self._database.write(lambda found: limits.set_limit(found, scope, slots, who, now))

    def limits(self) -> dict[str, int]:
        """Read the limits that somebody has set, by scope."""
        return self._database.read(limits.limits)

    def in_flight(self) -> tuple[InFlightBatch, ...]:
        """Read the batches that hold a slot now, the eldest first."""
        heard_after = self._clock() - self._lease
        return self._database.read(lambda found: limits.in_flight(found, heard_after))

    def queue_plan(self, plan_id: str, who: str, off_peak: str | None = None) -> QueuedPlan:
        """Release a plan to the run queue from now on; again changes nothing but its window.

        Raises:
            UnknownPlanError: there is no such plan.
            RequestError: it has not begun, or its life is over.
            PlanHeldError: it is stopped.
        """
        now = self._clock()
        return self._database.write(
            lambda found: queued.queue_plan(found, plan_id, who, off_peak, now)
        )

    def queued_plans(self) -> tuple[QueuedPlan, ...]:
        """Read what is known of the plans that are not over, those in the queue first.

        A plan that was never queued is among them once it was paused or stopped.
        """
        return self._database.read(queued.queued_plans)

    def control_plan(self, plan_id: str, control: Control, who: str) -> QueuedPlan:
        """Pause or stop a plan, or let it go on; whether it is queued or applied by hand.

        Raises:
            UnknownPlanError: there is no such plan.
            RequestError: its life is over.
            RequestError: it is paused or stopped already.
            RequestError: it is neither, and shall go on.
        """
        now = self._clock()
        return self._database.write(
            lambda found: queued.control_plan(found, plan_id, control, who, now)
        )

    def control_of(self, plan_id: str) -> Control:
        """Read whether a plan's batches may be opened; one that is over is not held any more."""
        return self._database.read(lambda found: queued.control_of(found, plan_id))
