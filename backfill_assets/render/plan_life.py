"""Describe where a plan stands.

How far its batches are, which commands may come next, what its checks and audits have found; how long it is
compared before it is promoted, when that is, and how long it is watched then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.evidence.manifest import EXPIRED
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.planning.review.acceptance import voided
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.planning.review.aftercare import Watch
    from backfill_assets.planning.review.appointment import Appointment
    from backfill_assets.planning.review.dual_run import DualRun
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck
    from backfill_assets.snapshots.slots import InFlightBatch
    from backfill_assets.snapshots.stored_plan import PlanEvent, StoredPlan
    from backfill_assets.state.batch_rows import BatchRow

_CELLS = 5
"""How many cells of a failed audit are named."""


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
        failed: batches that failed, and were the last one over some of their cells; a cancelled batch is not
            done, but not failed.
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


def progress(
    plan: Plan, naming: Naming, batches: Iterable[BatchRow], live: Iterable[InFlightBatch]
) -> tuple[Progress, ...]:
    """Count what a plan's batches did, model by model.

    Args:
        plan: the plan.
        naming: how cells are counted.
        batches: every batch that served it, the earliest first.
        live: the batches that hold their cells now; any other that has no end is one of a dead process.
    """
    listed, at_work = [*batches], {batch.batch_id for batch in live}
    return tuple(
        _progress(planned, naming, [row for row in listed if row.model == planned.model], at_work)
        for planned in plan.models
    )


def _progress(
    planned: ModelPlan, naming: Naming, rows: list[BatchRow], at_work: set[str]
) -> Progress:
    committed = [row for row in rows if row.is_committed]
    done = IntervalSet.union_all(row.stretches for row in committed)
    return Progress(
        planned.model,
        planned=naming.count(planned.model, planned.cells),
        certain=naming.count(planned.model, planned.certain),
        done=naming.count(planned.model, done & planned.cells),
        batches=len(committed),
        running=sum(row.batch_id in at_work for row in rows),
        failed=_failures(rows, done),
        rows=sum(row.rows or 0 for row in committed),
    )


def _failures(rows: list[BatchRow], done: IntervalSet) -> int:
    """Count the failed batches of which no later batch has built, or failed, all cells."""
    count, settled = 0, done
    for row in filter(_has_failed, reversed(rows)):
        count += bool(row.stretches - settled)
        settled |= row.stretches
    return count


def _has_failed(row: BatchRow) -> bool:
    return row.has_failed and row.failure is not FailureKind.CANCELLED


def status_text(stored: StoredPlan, now: datetime) -> str:
    """Write a plan's status; a plan that was only proposed may have expired."""
    return EXPIRED if stored.has_expired(now) else stored.status.value


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
        return commands_of(plan_id, ("resume", "abandon"))
    verbs_by_status: dict[str, tuple[str, ...]] = {
        PlanStatus.PROPOSED.value: ("apply", "show -v"),
        PlanStatus.APPLYING.value: ("apply", "abandon"),
        PlanStatus.BUILT.value: ("diff", *publishing, "abandon"),
        PlanStatus.PROMOTED.value: ("rollback", "undo"),
    }
    if status == EXPIRED:
        return ("backfill plan",)
    return commands_of(plan_id, verbs_by_status.get(status, ()))


def commands_of(plan_id: str, verbs: Iterable[str]) -> tuple[str, ...]:
    """Write verbs, each with what follows the plan's id, as commands for a plan."""
    split = (each.partition(" ") for each in verbs)
    return tuple(f"backfill {verb} {plan_id} {more}".rstrip() for verb, _, more in split)


def next_line(commands: Sequence[str]) -> str:
    """The line that names the commands of which one may come next; empty where there is none."""
    return f"Next: {', or '.join(commands)}" if commands else ""


def check_text(check: PlanCheck, accepted: Sequence[Acceptance] = ()) -> str:
    """Write one result: whether it holds, what was expected, what was found, and who decided."""
    void = voided(check, accepted)
    ended = check.accepted or void
    return (
        f"{_sign(check)} {check.check}: {check.text}"
        f"{f'; {ended}' if ended else ''} ({check.decided_by})"
    )


def _sign(check: PlanCheck) -> str:
    """Give the sign of a result: passed, accepted, or not."""
    if check.passed:
        return "\u2713"
    return "\u2248" if check.accepted else "\u2717"


def checks_markdown(checks: Sequence[PlanCheck], accepted: Sequence[Acceptance]) -> str:
    """Write the results of a plan's checks under a title; empty before they ran."""
    lines = (f"- `{check.model}`: {check_text(check, accepted)}" for check in checks)
    return "\n".join(("", "### Checks", "", *lines, "")) if checks else ""


def audit_lines(audited: Mapping[str, Sequence[AuditResult]]) -> Iterator[str]:
    """Say per model how many changed audits passed, and where the others failed."""
    for model, results in audited.items():
        failed = [result for result in results if not result.passed]
        ran = counted(len(results), "changed audit")
        yield f"audited {model}: {ran} on what stays published, {len(results) - len(failed)} passed"
        for result in failed:
            listed = ", ".join(result.cells[:_CELLS]) + (
                ", ..." if len(result.cells) > _CELLS else ""
            )
            where = f" in {listed}" if listed else ""
            kind = result.severity.value
            yield f"  {result.audit} ({kind}) failed{where}: found {result.found}, allowed {result.allowed}"


def blocks(audited: Mapping[str, Sequence[AuditResult]]) -> bool:
    """Whether a failed audit keeps the plan from being promoted."""
    return any(result.blocks for results in audited.values() for result in results)


def watch_text(watch: Watch) -> str:
    """Say how long a plan is watched, how often it was looked at, and what was found."""
    wrong = sum(bool(look.detail["found"]) for look in watch.looks)
    outcome = "all well" if not wrong else f"{wrong} of them with problems"
    if watch.looks and wrong and not watch.found:
        outcome += ", the last look without problems"
    looks = f"{counted(len(watch.looks), 'look')}, {outcome}" if watch.looks else "no look yet"
    begin = "was watched" if watch.ended else "is watched"
    return f"{begin} until {minute_text(watch.until)}, {looks}"


def dual_run_text(dual: DualRun) -> str:
    """Say until when both histories are filled, how often they were compared, and what was found last."""
    times = counted(len(dual.compared), "comparison")
    outcome = dual.refused or "every difference explained"
    compared = f"{times}, in the last one: {outcome}" if dual.compared else "not compared yet"
    return f"both histories are filled until {minute_text(dual.until)}; {compared}"


def appointment_text(found: Appointment | None) -> str:
    """Say when a plan is to be promoted, and who asked for it."""
    if found is None:
        return "has no appointment"
    why = f": {found.why}" if found.why else ""
    return f"is to be promoted on {minute_text(found.at)}, asked for by {found.who}{why}"


def promoted_before_text(done: PlanEvent | None) -> str:
    """Say when and by whom a plan was promoted before."""
    occasion = f" on {minute_text(done.at)} by {done.who}" if done else ""
    return f"nothing to do: it was promoted{occasion}"
