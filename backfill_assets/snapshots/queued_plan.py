"""A plan in the queue, and the control that a person has set on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from datetime import datetime


class Control(StrEnum):
    """Whether batches of a plan may be opened.

    A paused plan keeps its place in the queue, a stopped one leaves it. Either lets the batches in
    flight come to their end; where it is cancelled, their Spark jobs are, too.
    """

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    CANCELLED = "cancelled"

    @property
    def holds(self) -> bool:
        """Whether no further batch is opened."""
        return self is not Control.RUNNING

    @property
    def words(self) -> str:
        """Write it as the state of a plan."""
        return "stopped" if self is Control.CANCELLED else self.value

    @property
    def goes_on_by(self) -> str:
        """Name the verb by which a plan that is not built goes on."""
        return "resume" if self.holds else "apply"

    @property
    def event(self) -> PlanEventKind:
        """Name it in the history of a plan."""
        return _EVENTS[self]


_EVENTS = {
    Control.RUNNING: PlanEventKind.RESUMED,
    Control.PAUSED: PlanEventKind.PAUSED,
    Control.STOPPED: PlanEventKind.STOPPED,
    Control.CANCELLED: PlanEventKind.STOPPED_NOW,
}


@dataclass(frozen=True, slots=True)
class QueuedPlan:
    """The queue's record of an open plan.

    Attributes:
        plan_id: the plan.
        control: whether its batches may be opened.
        off_peak: the window in which it is released, as it was written; None for any time.
        set_by: who changed it last.
        set_at: when.
        queued_at: since when it is released to the run queue; None where it is not.
    """

    plan_id: str
    control: Control
    off_peak: str | None
    set_by: str
    set_at: datetime
    queued_at: datetime | None
