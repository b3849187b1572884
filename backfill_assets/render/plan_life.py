"""Describe where a plan stands: the progress of its batches, and the next possible commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.batch_rows import BatchRow

EXPIRED = "expired"
_FAILED, _RUNNING = "failed", "running"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one model of a plan is.

    Attributes:
        model: which.
        planned: its cells: the upper bound.
        certain: those of them that are built even if their input does not change.
        done: cells that a batch of the plan has committed.
        batches: committed batches.
        running: batches at work.
        failed: intervals whose last batch failed; a cancelled batch is not done, but not failed.
        rows: how many rows the committed batches hold.
    """

    model: str
    planned: int
    certain: int
    done: int
    batches: int
    running: int
    failed: int
    rows: int


def progress(plan: Plan, naming: Naming, batches: Iterable[BatchRow]) -> tuple[Progress, ...]:
    """Count what a plan's batches did, model by model.

    Args:
        plan: the plan.
        naming: how cells are counted.
        batches: every batch that served it.
    """
    listed = [*batches]
    return tuple(
        _progress(planned, naming, [row for row in listed if row.model == planned.model])
        for planned in plan.models
    )


def _progress(planned: ModelPlan, naming: Naming, rows: list[BatchRow]) -> Progress:
    committed = [row for row in rows if row.is_committed]
    done = IntervalSet.union_all(row.stretches for row in committed)
    failed = {row.stretches for row in rows if _has_failed(row) and row.stretches - done}
    return Progress(
        planned.model,
        planned=naming.count(planned.model, planned.cells),
        certain=naming.count(planned.model, planned.certain),
        done=naming.count(planned.model, done & planned.cells),
        batches=len(committed),
        running=sum(row.status == _RUNNING for row in rows),
        failed=len(failed),
        rows=sum(row.rows or 0 for row in committed),
    )


def _has_failed(row: BatchRow) -> bool:
    return row.status == _FAILED and row.failure is not FailureKind.CANCELLED


def status_text(stored: StoredPlan, now: datetime) -> str:
    """Write a plan's status; a plan that was only proposed may have expired."""
    expired = stored.status is PlanStatus.PROPOSED and now >= stored.expires_at
    return EXPIRED if expired else stored.status.value


def next_commands(
    plan_id: str,
    status: str,
    control: Control = Control.RUNNING,
    publishing: Sequence[str] = ("promote",),
) -> tuple[str, ...]:
    """List the commands for a plan with this status, the likeliest first.

    Args:
        plan_id: of which plan.
        status: where its life stands.
        control: what a person has said of it.
        publishing: by which verbs, with what follows the plan's id, a built plan comes nearer to its
            publication; none while it can only wait.
    """
    if control.holds and status in (PlanStatus.PROPOSED.value, PlanStatus.APPLYING.value):
        return (f"backfill resume {plan_id}", f"backfill abandon {plan_id}")
    named = {
        PlanStatus.PROPOSED.value: ("apply", "show -v"),
        PlanStatus.APPLYING.value: ("apply", "abandon"),
        PlanStatus.BUILT.value: ("diff", *publishing, "abandon"),
        PlanStatus.PROMOTED.value: ("rollback", "undo"),
    }
    if status == EXPIRED:
        return ("backfill plan",)
    split = (command.partition(" ") for command in named.get(status, ()))
    return tuple(f"backfill {verb} {plan_id} {more}".rstrip() for verb, _, more in split)
