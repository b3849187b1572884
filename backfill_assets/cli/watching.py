"""Follow a plan from recorded state: redrawn on a terminal, one line per change in a pipe."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from backfill_assets.cli.output import bar, out, say
from backfill_assets.engine.automatic.stuck import stuck_cells
from backfill_assets.engine.project.naming import plan_naming
from backfill_assets.engine.project.plan_age import may_go_on
from backfill_assets.evidence.manifest import EXPIRED
from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_life import progress
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_life import Progress
    from backfill_assets.snapshots.queued_plan import QueuedPlan

EVERY = 2.0
"""Seconds between two looks."""
_TOO_OLD = "has waited for too long"
_GOES_ON = (PlanStatus.PROPOSED, PlanStatus.APPLYING)


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How far a plan is at one moment.

    Attributes:
        status: of the plan.
        queued: its place in the queue and its control; None where it has neither.
        done: by model.
        stuck: whether all that is left has failed, and nothing of it comes again by itself.
        stands: whether it may still be applied: a proposal has not expired, one at work has not waited for too long.
    """

    status: PlanStatus
    queued: QueuedPlan | None
    done: tuple[Progress, ...]
    stuck: bool
    stands: bool = True

    @property
    def control(self) -> Control:
        """What a person has said of it."""
        return Control.RUNNING if self.queued is None else self.queued.control

    @property
    def ends(self) -> bool:
        """Whether nothing more will happen: the plan is built, over, stopped, stuck, or too old."""
        stopped = self.control in (Control.STOPPED, Control.CANCELLED)
        too_old = not (self.stands or any(model.running for model in self.done))
        return self.status not in _GOES_ON or stopped or self.stuck or too_old

    @property
    def where(self) -> str:
        """Say where it stands, in a few words."""
        words = [self.status.value]
        if not self.stands:
            words = [EXPIRED] if self.status is PlanStatus.PROPOSED else [*words, _TOO_OLD]
        if self.queued is None or self.status not in _GOES_ON:
            return ", ".join(words)
        if self.queued.control.holds:
            words.append(self.queued.control.words)
        if self.queued.queued_at is not None:
            words.append("in the queue")
        if self.queued.off_peak:
            words.append(f"at {self.queued.off_peak}")
        return ", ".join(words)


def watch(
    project: Project, plan: Plan, *, sleep: Callable[[float], None] = time.sleep
) -> PlanProgress:
    """Show a plan's progress until it is built, over, stopped, or all that is left has failed.

    Args:
        project: where it is recorded.
        plan: the plan.
        sleep: waits for some seconds.
    """
    live = Live(console=out, auto_refresh=False) if out.is_terminal else nullcontext()
    last: PlanProgress | None = None
    with live as screen:
        while True:
            now = _standing(project, plan)
            if isinstance(screen, Live):
                screen.update(Text("\n".join(_drawn(plan, now))), refresh=True)
            else:
                for line in _changed(plan, last, now):
                    say(line)
            last = now
            if now.ends:
                return now
            sleep(EVERY)


def _standing(project: Project, plan: Plan) -> PlanProgress:
    store = project.store
    rows = store.batches.of_plan(plan.plan_id)
    queued = next(
        (
            queued_plan
            for queued_plan in store.queue.queued_plans()
            if queued_plan.plan_id == plan.plan_id
        ),
        None,
    )
    stored = store.plans.get(plan.plan_id)
    status = stored.status
    done = progress(plan, plan_naming(project, plan), rows, store.limits.in_flight())
    # The queue leaves out what failed for good earlier; a command that applies a plan tries it again.
    in_queue = queued is not None and queued.queued_at is not None
    tried = in_queue or any(model.failed for model in done)
    at_rest = status is PlanStatus.APPLYING and not any(model.running for model in done)
    stuck = tried and at_rest and bool(stuck_cells(project, plan))
    is_over = status in _GOES_ON and not may_go_on(store, stored, project.clock())
    return PlanProgress(status, queued, done, stuck, not is_over)


def _drawn(plan: Plan, now: PlanProgress) -> list[str]:
    width = max((len(model.model) for model in now.done), default=0)
    return [
        f"{plan.plan_id}: {now.where}",
        *(
            f"  {model.model.ljust(width)}  {bar(model.done, model.planned)} {_words(model)}"
            for model in now.done
        ),
    ]


def _changed(plan: Plan, last: PlanProgress | None, now: PlanProgress) -> list[str]:
    """Give a line for all that is new since the last look."""
    lines: list[str] = []
    if last is None or last.where != now.where:
        lines.append(f"{plan.plan_id}: {now.where}")
    before = {model.model: model for model in last.done} if last else {}
    return lines + [
        f"  {model.model}: {_words(model)}"
        for model in now.done
        if before.get(model.model) != model
    ]


def _words(model: Progress) -> str:
    parts = [f"{model.done:,} of {counted(model.planned, 'cell')} built"]
    if model.running:
        parts.append(f"{counted(model.running, 'batch', 'batches')} at work")
    if model.failed:
        parts.append(f"{counted(model.failed, 'batch', 'batches')} failed")
    return ", ".join(parts)
