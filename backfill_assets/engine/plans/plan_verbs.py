"""The verbs of a plan: queue, apply, promote, roll back, undo and abandon, each a list of stages.

Every entrance ends here: commands, jobs of the launchpad, the queue, late data, launches by hand.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.plans.building import were_compared
from backfill_assets.engine.plans.carrying_over import carried_into
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.outcome import Outcome
from backfill_assets.engine.plans.publishing import finish_publication
from backfill_assets.engine.plans.refusals import (
    building_command,
    refuse,
    refuse_edited,
    refuse_outwaited,
    refuse_unreviewed,
    wrong_status,
)
from backfill_assets.engine.plans.stage_run import run_stages
from backfill_assets.engine.plans.workspace import restated_cells_of
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.review.acting import acting
from backfill_assets.engine.review.appointments import appointed_principal
from backfill_assets.engine.review.dual_runs import refuse_early
from backfill_assets.engine.review.evidence import record_end, write_owed_evidence
from backfill_assets.engine.review.notices import send_notices
from backfill_assets.engine.review.reviewed import built_plan
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.evidence.manifest import REFUSED, STOPPED
from backfill_assets.planning.change.strategy_checks import EXPLAINED
from backfill_assets.planning.plan.outline import plan_or_outline, why_unreadable
from backfill_assets.planning.plan.request import Strategy
from backfill_assets.planning.plan.stages import (
    Close,
    abandon_stages,
    apply_stages,
    promote_stages,
    queue_stages,
    rollback_stages,
    undo_stages,
)
from backfill_assets.planning.queue.off_peak import read_off_peak
from backfill_assets.planning.review.approval import Act
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import NOT_ENDED, OPEN, PlanEventKind, PlanStatus
from backfill_assets.snapshots.timing import APPLY, PROMOTE
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.promotions import PromotionPendingError
from backfill_assets.state.queue import PlanPausedOrStoppedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.stages import Stage
    from backfill_assets.snapshots.publication import Intent
    from backfill_assets.snapshots.queued_plan import QueuedPlan
    from backfill_assets.snapshots.stored_plan import StoredPlan


def apply_plan(project: Project, plan: Plan, why: str = "") -> Outcome:
    """Build what a plan says, and on an unprotected environment publish it.

    Applying again goes on with exactly what is left, unless a planned model was edited or the plan has
    waited for too long. A protected environment waits for `promote`; why that would be refused is looked
    at while Spark is warm, not compared again, and put into the outcome instead of raised.

    Raises:
        RequestError: it is too old, or waited for too long, or is not the plan that the state keeps
            under its id, or is promoted, abandoned or taken back already, or a model was edited since.
        StalePlanError: cells or columns that it reads or rewrites have moved.
        PlanConflictError: another plan is at work on the same cells.
        BackfillAssetsError: an unprotected environment can't be promoted; see `promote_plan`.
    """
    op = Operation(project=project, plan=plan, why=why)
    since = op.at_work.seconds()
    with op.at_work.at(Phase.CHECKING, f"plan {op.plan_id}"):
        start_applying(op)
    done = run_stages(op, apply_stages(op.plan), _stored_outcome(op))
    op.timed(APPLY, since)
    if op.plan.request.dual_run_days and not (done.left or done.canaries):
        appended = ranges_by_model(op.project.loaded.graph, done.carried)
        op.tell(
            PlanEventKind.COMPARED, appended=appended, found=_differences(op), refused=done.refused
        )
    if done.left:
        errors = [(failure.model, failure.error) for failure in done.failed]
        record_end(op, op.plan_id, STOPPED, _why_left(done.left, errors))
    elif done.refusal is not None:
        record_end(op, op.plan_id, REFUSED, done.refused)
    if done.left or op.plan.protected or op.plan.fills_only:
        _tell_of(op)
        return done
    return promote_plan(project, plan, why, done)


def end_stuck(op: Operation, left: CellsByModel) -> Outcome:
    """End a queued plan that can't be completed, as an apply that leaves cells ends: leave evidence, and tell consumers.

    The plan may go on, once its code or an input has changed.

    Args:
        op: the plan.
        left: what is left of it; all of it has failed for good, or reads what has.
    """
    op.tell(PlanEventKind.INCOMPLETE)
    batches = op.store.batches.of_plan(op.plan_id)
    last = {row.model: row.error for row in batches if row.error and row.model in left}
    record_end(op, op.plan_id, STOPPED, _why_left(left, last.items()))
    _tell_of(op)
    return replace(_stored_outcome(op), left=left)


def promote_plan(
    project: Project, plan: Plan, why: str = "", so_far: Outcome | None = None
) -> Outcome:
    """Publish what a plan has built.

    Args:
        project: who publishes.
        plan: the plan.
        why: the reason, in words.
        so_far: how far its stages have brought it just now; None: as the state has it.

    Raises:
        RequestError: its dual run is not over.
        RequestError: it was never applied, or is promoted or abandoned already, or waited for too long,
            or planned cells are not ready: nothing was published.
        StalePlanError: cells or columns that it reads or rewrites have moved.
        StrategyCheckError: a strategy's check fails.
        RequestError: an audit that the plan brings fails on cells that it keeps.
        SliceLeakError: rows outside the plan's slice would change.
        EvidenceNotWrittenError: its evidence can't be written.
        UnapprovedError: the policy requires approvals that it lacks.
        UnansweredError: a consumer has to acknowledge it, or objects, or its notice period is not over.
        UnsignedActError: the policy names who may promote, and there is no way to sign here.
        NotEntitledError: the principal is none of them.
    """
    op = Operation(project=project, plan=plan, why=why)
    refuse_edited(op)
    finish_publication(op.environment(), op.plan_id)  # of a process that died
    now, last = _stored_outcome(op), op.store.publications.promotion(op.plan_id)
    if now.status is PlanStatus.PROMOTED and last is not None and last.holder == op.run_id:
        number = last.published or 0
        _tell_of(op)
        return replace(
            so_far or now,
            status=now.status,
            carried=carried_into(op),
            number=number,
            removed=op.plan.removed,
        )
    if now.status not in OPEN:
        raise wrong_status(op.plan_id, now.status)
    refuse_outwaited(op)
    _refuse_unopened(op)
    with _leaving_evidence(op):
        refuse_early(op.store, op.plan, op.clock())
        refuse_unreviewed(op)
    op = promoting(op)
    since = op.at_work.seconds()
    with _leaving_evidence(op):
        done = run_stages(op, promote_stages(), so_far or now)
    op.timed(PROMOTE, since)
    _tell_of(op)
    return done


@contextmanager
def _leaving_evidence(op: Operation) -> Iterator[None]:
    """Let a promotion that is refused leave evidence of why."""
    try:
        yield
    except BackfillAssetsError as error:
        record_end(op, op.plan_id, REFUSED, str(error))
        raise


def rollback_plan(project: Project, plan: Plan, why: str = "") -> Outcome:
    """Bring every model of a plan back to where it was before its promotion.

    Days that were published since are missing afterwards; the next run fills them with the old logic.

    Raises:
        RequestError: it is not promoted, or others have moved the same models since, or what was published
            before is not kept any more.
        NotEntitledError: the policy names others who may; `signed_for` says how a principal is known.
    """
    op = Operation(project=project, plan=plan, why=why)
    return _take_back(op, Act.ROLLBACK, rollback_stages(), PlanStatus.ROLLED_BACK)


def undo_plan(project: Project, plan: Plan, why: str = "") -> Outcome:
    """Bring only the cells of a plan back; days that were written since are kept.

    Raises:
        RequestError: it is not promoted, or another plan has changed the same since, or what was published
            before is not kept any more, or days written since can't be computed with the old logic.
    """
    op = Operation(project=project, plan=plan, why=why)
    return _take_back(op, Act.UNDO, undo_stages(), PlanStatus.UNDONE)


def given_up(stored: StoredPlan) -> Plan:
    """Give a plan that is to be given up; if its content can't be read, one with its id and environment alone.

    So a plan that an earlier release made can still be given up.
    """
    named = plan_or_outline(stored)
    return replace(named, models=()) if why_unreadable(stored) else named


def abandon_plan(project: Project, plan: Plan, why: str = "") -> Outcome:
    """Give up a plan that is not published; what it built is left for collection.

    Raises:
        RequestError: it is promoted.
        CellsClaimedError: a live batch is building in its workspace.
    """
    op = Operation(project=project, plan=plan, why=why)
    if op.store.environments.exists(plan.environment):  # none is dropped during a publication
        finish_publication(op.environment(), plan.plan_id)
    so_far = _stored_outcome(op)
    if so_far.status not in (*NOT_ENDED, PlanStatus.ABANDONED):
        is_published = so_far.status is PlanStatus.PROMOTED
        raise RequestError(
            found=f"plan {plan.plan_id} is {so_far.status.value} and can't be abandoned any more",
            do=f"`backfill rollback {plan.plan_id}` brings back what was published before it"
            if is_published
            else "What it has published is taken back already: nothing is left to give up",
        )
    done = run_stages(op, abandon_stages(), so_far)
    _tell_of(op)
    return done


def queue_plan(op: Operation, off_peak: str | None = None) -> QueuedPlan:
    """Give a plan to the run queue: from then on the sensor releases it, batch by batch.

    One that is in the queue stays there, and only its window is changed. `apply` goes on from here just
    as well.

    Args:
        op: the plan, and who queues it.
        off_peak: the window in which it is released, such as ``22:00-06:00 Europe/Berlin``; None for
            any time.

    Raises:
        InvalidOffPeakError: the window can't be read.
        UnknownZoneError: nor its time zone.
        PlanPausedOrStoppedError: the plan is stopped.
        RequestError: its canaries are not built yet, or all of it is built.
        BackfillAssetsError: it can't be applied; see `apply_plan`.
    """
    window = None if off_peak is None else str(read_off_peak(off_peak))
    control = op.store.queue.control_of(op.plan_id)
    if control in (Control.STOPPED, Control.CANCELLED):
        raise PlanPausedOrStoppedError(op.plan_id, control)
    _refuse_canaries(op)
    start_applying(op)
    if op.store.plans.get(op.plan_id).status is PlanStatus.BUILT:
        raise RequestError(
            found=f"plan {op.plan_id} is built already: the queue has nothing to build of it, nothing was queued",
            do=f"`backfill promote {op.plan_id}` publishes it",
        )
    run_stages(op, queue_stages(op.plan), _stored_outcome(op))
    queued = op.store.queue.queue_plan(op.plan_id, op.who, window)
    op.tell(PlanEventKind.QUEUED, off_peak=window)
    return queued


def _refuse_canaries(op: Operation) -> None:
    """Refuse to queue a plan whose canaries a person has not seen: the queue would build all of it."""
    if not op.plan.canaries:
        return
    opened = op.store.environments.exists(workspace_name(op.plan_id)) and were_compared(op)
    if not opened or op.workspace().left_of(op.plan) & op.plan.canaries:
        raise RequestError(
            found=f"the canaries of plan {op.plan_id} are not built yet, nothing was queued",
            do=f"{building_command(op)} builds them; compare them with `backfill diff "
            f"{op.plan_id}`, then queue it",
        )


def signed_for(op: Operation, act: Act) -> Operation:
    """Give an operation in the name of the principal who signs for it; as it was where none is asked for.

    Raises:
        UnsignedActError: the policy names who may, and there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the policy names others.
    """
    principal = acting(op.project, act, op.plan_id, op.plan.environment)
    return op if principal is None else replace(op, project=replace(op.project, who=principal))


def promoting(op: Operation) -> Operation:
    """Give a promotion in the name of its principal: who signs now, or has signed for an appointment.

    What is published without a person has none.

    Raises:
        UnsignedActError: the policy names who may, and there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the policy names others.
    """
    gate = gate_in(op.project, op.plan.environment)
    if gate is None or built_plan(op.project, op.plan_id).is_automatic:
        return op
    principal = appointed_principal(op.project, op.plan_id, gate)
    if principal is not None:
        return replace(op, project=replace(op.project, who=principal))
    return signed_for(op, Act.PROMOTE)


def _take_back(op: Operation, act: Act, stages: tuple[Stage, ...], end: PlanStatus) -> Outcome:
    """Take a plan back; of one whose publication a dead process had decided, only the end is left."""
    refuse_edited(op)
    op = signed_for(op, act)
    finish_publication(op.environment(), op.plan_id)
    so_far = _stored_outcome(op)
    last = op.store.publications.promotion(op.plan_id)
    if so_far.status is end and last is not None and _is_left_open(op, last):
        so_far = replace(so_far, number=last.published)
        stages = tuple(stage for stage in stages if isinstance(stage, Close))
    try:
        done = run_stages(op, stages, so_far)
    except BackfillAssetsError:
        with suppress(CellsClaimedError, PromotionPendingError):  # another process is at it
            op.store.environments.drop_workspace(op.undo_id)  # else it would keep the old tables
        raise
    _tell_of(op)
    return done


def _tell_of(op: Operation) -> None:
    """Write the evidence that plans owe, and tell consumers."""
    write_owed_evidence(op)
    send_notices(op)


def _is_left_open(op: Operation, last: Intent) -> bool:
    """Whether this run has just finished a publication, or its process died before it closed the plan."""
    undo = workspace_name(op.undo_id)
    return last.holder == op.run_id or op.store.environments.exists(undo)


def start_applying(op: Operation) -> None:
    """Refuse what can't be applied, and say that the plan is at work; again changes nothing.

    Raises:
        BackfillAssetsError: as `apply_plan` says.
    """
    refuse(op)
    if op.store.plans.get(op.plan_id).status is PlanStatus.PROPOSED:
        if not (op.plan.request.late or op.plan.request.launch):
            op = signed_for(op, Act.APPLY)
        _owe_everywhere(op)  # before: a plan that is resumed does not come here again
        told = op.event(PlanEventKind.APPLYING)
        op.store.plans.set_plan_status(op.plan_id, PlanStatus.PROPOSED, PlanStatus.APPLYING, told)


def _refuse_unopened(op: Operation) -> None:
    """Refuse to promote what was never built: its process died first, or it only fills gaps."""
    if op.store.environments.exists(workspace_name(op.plan_id)):
        return
    status = op.store.plans.get(op.plan_id).status
    if status not in OPEN:  # another process has ended it meanwhile
        raise wrong_status(op.plan_id, status)
    raise RequestError(
        found=f"plan {op.plan_id} is not completely built, nothing was published",
        do=f"{building_command(op)} builds the remaining cells",
    )


def _differences(op: Operation) -> dict[str, str]:
    """Say of each model of a dual run what its comparison has found."""
    dual = {name for name, way in op.plan.request.strategies if way is Strategy.DUAL_RUN}
    checks = op.store.checks.of_plan(op.plan_id)
    return {
        each.model: each.text for each in checks if each.model in dual and each.check == EXPLAINED
    }


def _why_left(left: Iterable[str], errors: Iterable[tuple[str, str]]) -> str:
    """Say of which models cells are left to build, and what has failed."""
    failed = "; ".join(f"{model}: {error}" for model, error in errors)
    return f"cells are left to build of {', '.join(left)}{f': {failed}' if failed else ''}"


def _stored_outcome(op: Operation) -> Outcome:
    return Outcome(op.store.plans.get(op.plan_id).status)


def _owe_everywhere(op: Operation) -> None:
    """Mark what is restated in every version, if that was asked: other environments owe it too."""
    if not op.plan.request.restate_all_snapshots:
        return
    for planned in op.plan.models:
        if cells := restated_cells_of(planned):
            reason = op.plan.request.reason or f"restated by plan {op.plan_id}"
            op.store.environments.mark_owed_everywhere(
                planned.model, cells, reason, plan_id=op.plan_id
            )
