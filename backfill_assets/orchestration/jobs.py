"""Jobs: the verbs of a plan, for people who work in the UI, and what the sensor asks for."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import dagster as dg

from backfill_assets.engine.automatic.late_mark import not_automatic_models
from backfill_assets.engine.automatic.late_plan import Refreshed, refresh_late
from backfill_assets.engine.automatic.scan import paused_models
from backfill_assets.engine.automatic.serving import finish
from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.plans.making import left_before, make_plan, prepare
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.outcome import Outcome
from backfill_assets.engine.plans.plan_verbs import (
    abandon_plan,
    apply_plan,
    given_up,
    promote_plan,
    queue_plan,
    rollback_plan,
    undo_plan,
)
from backfill_assets.engine.plans.rollback_checks import promoted_after
from backfill_assets.engine.plans.told_cells import back_told
from backfill_assets.engine.project.plan_age import standing_rows
from backfill_assets.engine.review.aftercare import ask_watch, look_after
from backfill_assets.engine.review.appointments import (
    appoint_at,
    appointments_due,
    end_appointment,
    refuse_time,
)
from backfill_assets.engine.review.approvals import approval_state, approve, to_approve
from backfill_assets.engine.review.before_publishing import commands_now
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.engine.review.notices import send_notices
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.orchestration.identity import principal_of, signer_of
from backfill_assets.orchestration.job_configs import (
    ApplyConfig,
    InEnvironment,
    OfPlan,
    OperatorConfig,
    PlanConfig,
    PromoteConfig,
    RollbackConfig,
    StopConfig,
)
from backfill_assets.orchestration.launches import who_launched
from backfill_assets.orchestration.plan_work import Known, PlanWork, logged
from backfill_assets.orchestration.released_runs import (
    AFTERCARE_JOB,
    FINISH_JOB,
    LATE_JOB,
    NOTICES_JOB,
    REASON_TAG,
    op_name,
)
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.orchestration.sources import observe_job
from backfill_assets.orchestration.steps import as_run_failure
from backfill_assets.orchestration.switches import GAP_FILL, LATE_SCHEDULE
from backfill_assets.planning.plan import written_options as written
from backfill_assets.planning.plan.plan import Plan
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.review.aftercare import read_watch
from backfill_assets.planning.review.appointment import Appointment
from backfill_assets.planning.review.contract_text import written_expectations
from backfill_assets.planning.rule.late_work import beyond_words
from backfill_assets.render.plan_life import (
    appointment_text,
    audit_lines,
    blocks,
    promoted_before_text,
    watch_text,
)
from backfill_assets.render.plan_words import ranges_by_model
from backfill_assets.settings import read_settings
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus, promotion_of

_Body = Callable[[PlanWork, Any], None]


def plan_jobs(known: Known) -> list[dg.JobDefinition]:
    """Make the jobs of the launchpad that stand for a verb of a plan."""
    job = partial(_job, known)
    return [
        job(
            "plan",
            "Show what would change, cell by cell. Nothing else is written.",
            PlanConfig,
            _plan,
        ),
        job("apply", "Build the cells of a plan in its workspace.", ApplyConfig, _apply),
        job(
            "promote",
            "Publish what a plan has built, all models at once.",
            PromoteConfig,
            _promote,
        ),
        job(
            "approve",
            "Approve a built plan, in the name of the person whom the webserver has authenticated.",
            OfPlan,
            _approve,
        ),
        job("abandon", "Abandon a plan that is not promoted.", OfPlan, _abandon),
        job("rollback", "Return to the data from before a plan.", RollbackConfig, _rollback),
        job(
            "undo",
            "Bring back only the cells of a plan; days that were written since are kept.",
            OfPlan,
            _undo,
        ),
        job("pause", "Start no further batch of a plan.", OfPlan, _control(Control.PAUSED)),
        job(
            "resume",
            "Let a paused or stopped plan go on; a stopped one has left the queue: launch apply as well.",
            OfPlan,
            _control(Control.RUNNING),
        ),
        job(
            "stop", "Take a plan out of the queue; cells already built are kept.", StopConfig, _stop
        ),
    ]


def sensor_jobs(known: Known) -> list[dg.JobDefinition]:
    """Make the jobs that the sensor asks for."""
    job = partial(_job, known)
    return [
        job(
            FINISH_JOB,
            "Audit what a queued plan keeps, and call it built; publish it where nothing is protected. Of a plan of "
            "which all that is left has failed, leave evidence and tell consumers; the run fails. "
            f"{GAP_FILL} asks for it.",
            OfPlan,
            _finish,
        ),
        job(
            LATE_JOB,
            "Build again what late rows reach inside of late windows, and publish it at once. "
            f"{GAP_FILL} asks for it, or the schedule {LATE_SCHEDULE}.",
            InEnvironment,
            _late,
        ),
        observe_job(known),
        job(
            AFTERCARE_JOB,
            "Look at what a watched plan has published; the run fails when something is wrong, and names the "
            f"command that goes back. {GAP_FILL} asks for it.",
            OfPlan,
            _aftercare,
        ),
        job(
            NOTICES_JOB,
            "Send the notices to consumers that are due; one that fails is tried again later. "
            f"{GAP_FILL} asks for it.",
            OperatorConfig,
            _notices,
        ),
    ]


def _job(
    known: Known, name: str, says: str, config: type[dg.Config], body: _Body
) -> dg.JobDefinition:
    def done(
        context: dg.OpExecutionContext,
        config: Any,  # noqa: ANN401 - replaced below
        backfill_spark: SparkResource,
        backfill_state: StateResource,
    ) -> None:
        with as_run_failure():
            who = who_launched(context.run, config.who)
            loaded = known()
            project = replace(
                backfill_state.project(loaded, context.run.run_id, backfill_spark, str(who)),
                listener=logged(context, loaded.graph),
                code=lambda: loaded.fingerprints,
            )
            signing = replace(project, sign=signer_of(project, principal_of(context.run)))
            work = PlanWork(project=signing, settings=read_settings(), context=context, who=who)
            body(work, config)

    done.__annotations__["config"] = config  # Dagster reads the form of the launchpad from it
    op = dg.op(name=op_name(name), description=says)(done)

    @dg.job(name=name, description=says, executor_def=dg.in_process_executor)
    def of_plan() -> None:
        op()

    return of_plan


def _plan(work: PlanWork, config: PlanConfig) -> None:
    request = PlanRequest(
        environment=config.environment,
        asked_by=str(work.who),
        reason=config.reason,
        restate=tuple(
            written.restatement(restatement.name, restatement.first, restatement.last)
            for restatement in config.restate
        ),
        select=written.chosen(config.select),
        start=config.first or None,
        end=config.last or None,
        forward_only=config.forward_only,
        empty=config.empty,
        restate_all_snapshots=config.restate_all_snapshots,
        end_bounded=config.end_bounded,
        ignore_cron=config.ignore_cron,
        skip_upstream=config.skip_upstream,
        effective_from=config.effective_from or None,
        where=config.where or None,
        cutoff=config.cutoff or None,
        lift_cutoffs=written.chosen(config.lift_cutoff),
        dual_run_days=config.dual_run,
        pause_schedules=config.pause_schedules,
        canary=config.canary,
        categories=written.categories(config.category),
        strategies=written.strategies(config.strategy),
        kept_rows=written.kept_rows(config.kept_rows or None),
        spark=written.spark(config.spark),
        expect=written_expectations(config.expect),
    )
    as_of = written.instant(config.now)
    made = make_plan(work.project, request, as_of, told=work.context.log.warning)
    plan, remaining = made.plan, left_before(work.project, made, as_of)
    if plan.is_empty:
        outcome = f"nothing to plan; {remaining.words}" if remaining.is_open else "nothing to do"
        notes = "; ".join(filter(None, (remaining.warning, *plan.notes)))
        work.context.add_output_metadata({"plan": outcome, "notes": notes})
        return
    work.tag(plan)
    work.show(plan, left=remaining.words)


def _apply(work: PlanWork, config: ApplyConfig) -> None:
    if config.off_peak and not config.queue:
        raise RequestError(
            found="off_peak is for plans in the queue, nothing was built",
            do="give queue too, or launch this in those hours",
        )
    plan = work.plan(config.plan)
    prepare(work.project, plan, work.who, read_settings().operators)
    if config.queue:
        op = Operation(project=work.project, plan=plan, why=config.reason)
        queue_plan(op, config.off_peak or None)
        work.show(plan, queued=True)
        return
    _ended(work, plan, apply_plan(work.project, plan, config.reason or plan.request.reason))


def _finish(work: PlanWork, config: OfPlan) -> None:
    plan = work.plan(config.plan)
    _ended(work, plan, finish(work.project, plan, config.reason or plan.request.reason))


def _late(work: PlanWork, config: InEnvironment) -> None:
    run = work.run(config.environment)
    done = refresh_late(run, _not_automatic(work), config.reason)
    reported = work.report_published(config.environment)
    counted = {
        what: {
            name: run.graph.models[name].cadence.count(cells) for name, cells in by_model.items()
        }
        for what, by_model in (
            ("cells", done.cells),
            ("needs_a_plan", done.left.waiting),
            ("held", done.held),
        )
    }
    work.context.add_output_metadata(
        {
            "plan_id": done.plan_id or "none was needed",
            "needed_plan": done.needed or "none",
            **_decision_on(work, done),
            **counted,
            "cells_spared": dict(done.spared),
            "because": dict(done.left.because),
            "awaits_rows_of": list(done.left.awaits),
            "notes": "; ".join(done.notes),
            "changed_cells": reported,
        }
    )
    if done.failed or not done.promoted:
        if done.ended:
            work.end_for_good()
        reasons = [*(failure.error for failure in done.failed), *done.notes]
        raise dg.Failure(description="; ".join(reasons), allow_retries=False)


def _decision_on(work: PlanWork, done: Refreshed) -> dict[str, str]:
    """Say of the plan that late data waits for what a person can do about it; nothing where there is none."""
    if done.needed is None:
        return {}
    plan = read_plan(work.store.plans.get(done.needed).content)
    commands = ", or ".join(commands_now(work.project, plan))
    waiting = [*done.left.waiting]
    beyond = dict.fromkeys(name for late in waiting for name in done.left.beyond(late))
    work.context.log.warning(
        "late cells of %s wait for plan %s%s: %s",
        ", ".join(waiting),
        done.needed,
        beyond_words(beyond),
        commands,
    )
    return {"next": commands}


def _not_automatic(work: PlanWork) -> list[str]:
    """Name the models that are not automatic, or are paused; a person's own launch includes them."""
    if REASON_TAG not in work.context.run.tags:
        return []
    paused = paused_models(standing_rows(work.store, work.project.clock()))
    return [*paused, *not_automatic_models(work.graph)]


def _ended(work: PlanWork, plan: Plan, done: Outcome) -> None:
    """Show what became of a plan; the run fails if cells are left."""
    if done.status is PlanStatus.PROMOTED:
        work.report_published(plan.environment)
    remaining = ranges_by_model(work.graph, done.left)
    audits = "; ".join(audit_lines(done.audited))
    metadata = {
        "left": remaining,
        "cells_spared": dict(done.spared),
        "audits": audits or "none changed",
    }
    if done.canaries and not done.failed:
        if done.refused:
            raise work.failure(plan, f"the canaries are built: {done.refused}", **metadata)
        work.show(plan, canaries="are built; compare them, and apply the plan again", **metadata)
        return
    if remaining:
        listed = "; ".join(f"{name}: {cells}" for name, cells in remaining.items())
        message = (
            f"plan {plan.plan_id} is not completely built; cells still to build: {listed}; "
            f"`backfill apply {plan.plan_id}` builds them"
        )
        raise work.failure(plan, message, **metadata)
    if blocks(done.audited):
        raise work.failure(plan, audits, **metadata)
    if done.refused:
        raise work.failure(plan, f"`promote` would refuse: {done.refused}", **metadata)
    work.show(plan, **metadata)


def _notices(work: PlanWork, _: OperatorConfig) -> None:
    send_notices(work)


def _aftercare(work: PlanWork, config: OfPlan) -> None:
    plan = work.plan(config.plan)
    looked = look_after(work.project, plan.plan_id)
    if looked.found:
        raise work.failure(plan, looked.alarm, watch=watch_text(looked.watch))
    work.show(plan, watch=watch_text(looked.watch))


def _promote(work: PlanWork, config: PromoteConfig) -> None:
    plan, now = work.plan(config.plan), work.project.clock()
    if work.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED:
        _promoted_before(work, plan, config)
        return
    due = appointments_due(work.store, now).get(plan.plan_id)
    if due is None and REASON_TAG in work.context.run.tags:
        work.show(plan, appointment="is taken back or moved; nothing was published")
        return
    if due is None or config.at:
        work.may_change(plan.environment)  # who made an appointment was allowed to, then
    if config.watch:
        ask_watch(work.project, plan.plan_id, read_watch(config.watch))
    if config.at:
        made = appoint_at(work.project, plan.plan_id, config.at, config.reason)
        work.show(plan, appointment=appointment_text(made))
        return
    promoted = _promoted(work, plan, config.reason, due)
    reported = work.report_published(plan.environment)
    work.show(plan, publication=promoted.number, changed_cells=reported)


def _promoted_before(work: PlanWork, plan: Plan, config: PromoteConfig) -> None:
    refuse_time(plan.plan_id, config.at or None)
    if config.watch:
        ask_watch(work.project, plan.plan_id, read_watch(config.watch))
    done = promotion_of(work.store.plans.events(plan.plan_id))
    reported = work.report_published(plan.environment)
    work.show(plan, promotion=promoted_before_text(done), changed_cells=reported)


def _approve(work: PlanWork, config: OfPlan) -> None:
    of = to_approve(work.project, work.plan(config.plan).plan_id)
    made = approve(of, bound_parts(of), config.reason)
    now = approval_state(work.project, of.plan.plan_id)
    work.show(
        of.plan,
        approved_by=made.principal,
        until=made.expires.isoformat(),
        still_required=list(now.lacking) if now else [],
    )


def _promoted(work: PlanWork, plan: Plan, why: str, due: Appointment | None) -> Outcome:
    """Promote a plan; where an appointment can't be kept, its history says why, and it is over.

    Where what is in the way may pass, the appointment stays, and the run is requested again.
    """
    why = why or (due.why if due else "") or plan.request.reason
    if due is None:
        return promote_plan(work.project, plan, why)
    try:
        return promote_plan(replace(work.project, who=due.who), plan, why)
    except BackfillAssetsError as error:
        if not kind_of(error).may_pass:
            end_appointment(work.project, plan.plan_id, str(error))
        raise


def _abandon(work: PlanWork, config: OfPlan) -> None:
    plan = given_up(work.store.plans.get(config.plan.strip()))
    work.tag(plan)
    abandon_plan(work.project, plan, config.reason)
    work.show(plan)


def _rollback(work: PlanWork, config: RollbackConfig) -> None:
    if bool(config.plan) == bool(config.to):
        raise RequestError(
            found="name the plan to roll back, or in `to` the one to go back to; one of the two"
        )
    named = work.plan(config.to or config.plan)
    work.may_change(named.environment)
    plans = promoted_after(work.store, named) if config.to else (named,)
    told: list[dict[str, Any]] = []
    for plan in plans:
        try:
            back = rollback_plan(work.project, plan, why=config.reason)
        except BackfillAssetsError as error:
            if not told:
                raise
            done = _taken_back(work, named.environment, told)
            said = f"{error}; the plans listed in 'rolled_back' were rolled back"
            raise work.failure(named, said, **done) from error
        told.append(back_told(work, plan, back))
    work.show(named, **_taken_back(work, named.environment, told))


def _taken_back(work: PlanWork, environment: str, told: list[dict[str, Any]]) -> dict[str, Any]:
    """Report what taking plans back has published, and give it as the command does, plan by plan."""
    reported = work.report_published(environment)
    names = ", ".join(back["plan_id"] for back in told)
    return {"rolled_back": names, "published": told, "changed_cells": reported}


def _undo(work: PlanWork, config: OfPlan) -> None:
    plan = work.plan(config.plan)
    work.may_change(plan.environment)
    back = undo_plan(work.project, plan, why=config.reason)
    told = [back_told(work, plan, back)]
    reported = work.report_published(plan.environment)
    work.show(plan, published=told, changed_cells=reported)


def _control(control: Control) -> _Body:
    def body(work: PlanWork, config: OfPlan) -> None:
        plan = work.plan(config.plan)
        work.store.queue.control_plan(plan.plan_id, control, str(work.who), config.reason)
        work.show(plan, control=control.words)

    return body


def _stop(work: PlanWork, config: StopConfig) -> None:
    _control(Control.CANCELLED if config.now else Control.STOPPED)(work, config)
