"""The shared part of `pause`, `resume` and `stop`: set the control, record the event, report it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.project import open_store, who_asks
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.intervals.text import counted
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from backfill_assets.snapshots.queued_plan import Control, QueuedPlan
    from backfill_assets.snapshots.slots import InFlightBatch


@dataclass(frozen=True, slots=True)
class Controlled:
    """The new control of a plan, and its batches in flight."""

    plan: QueuedPlan
    at_work: tuple[InFlightBatch, ...]

    def tell(self, said: str, *, then: str, as_json: bool) -> None:
        """Write the control as JSON, or as text with the next command."""
        if as_json:
            print_json(self._plain())
            return
        say(f"Next: backfill {then}")
        queue = "" if self.plan.queued_at is None else "; it is in the queue"
        say(f"{self.plan.plan_id}: {said}{queue}.")

    @property
    def going_on(self) -> str:
        """Count the batches at work."""
        return f"{counted(len(self.at_work), 'batch', 'batches')} at work"

    def _plain(self) -> dict[str, Any]:
        return {
            "plan_id": self.plan.plan_id,
            "control": self.plan.control.value,
            "queued_at": self.plan.queued_at,
            "off_peak": self.plan.off_peak,
            "at_work": [
                {
                    **asdict(batch),
                    "interval": str(batch.stretches.span()),
                    "stretches": [str(each) for each in batch.stretches],
                }
                for batch in self.at_work
            ],
        }


def controlled(plan: str, control: Control, why: str) -> Controlled:
    """Hold a plan, or let it continue; see `Queue.control_plan`."""
    settings = read_settings()
    with open_store(settings) as store:
        plan_id = kept_plan(store, plan).plan_id
        queued = store.queue.control_plan(plan_id, control, str(who_asks(settings)), why)
        at_work = tuple(
            batch for batch in store.limits.in_flight() if batch.plan_id == queued.plan_id
        )
    return Controlled(queued, at_work)
