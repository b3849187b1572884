"""The runs that follow up on plans: comparisons of dual runs, promotions at their time, looks at what is published, notices to consumers."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import dagster as dg

from backfill_assets.engine.review.aftercare import watches
from backfill_assets.engine.review.appointments import appointments_due
from backfill_assets.engine.review.dual_runs import dual_runs
from backfill_assets.orchestration.released_runs import (
    AFTERCARE_JOB,
    APPLY_JOB,
    MARK_TAG,
    NOTICES_JOB,
    PLAN_TAG,
    PRIORITY_TAG,
    PROMOTE_JOB,
    REASON_TAG,
    named,
    run_config,
    tried_lately,
)
from backfill_assets.planning.review.aftercare import Watch
from backfill_assets.planning.review.notices import TOLD
from backfill_assets.state.store import Store

FOLLOW_UP_JOBS = (APPLY_JOB, PROMOTE_JOB, AFTERCARE_JOB, NOTICES_JOB)
"""Every job that is requested here: the sensor may request no other one."""

_NOTICES_APART = 300
"""How many seconds runs that send notices are apart: one that died is requested again."""


def follow_ups(
    instance: dg.DagsterInstance, store: Store, now: datetime
) -> Iterator[dg.RunRequest]:
    """Request every run that follows up on a plan at an instant."""
    for due in (promotions_due, comparisons_due):
        yield from due(instance, store, now)
    for due in (looks_due, notices_due):
        yield from (each for each in due(store, now) if not _was_requested(instance, each))


def _was_requested(instance: dg.DagsterInstance, request: dg.RunRequest) -> bool:
    """Whether there is a run of the same tags: Dagster drops a key that it knows, and the tick would not say why."""
    return bool(instance.get_runs(filters=dg.RunsFilter(tags=dict(request.tags)), limit=1))


def looks_due(store: Store, now: datetime) -> tuple[dg.RunRequest, ...]:
    """Request a look at each watched plan that is due; one that died is requested again a while later."""
    return tuple(
        _of_plan(AFTERCARE_JOB, plan_id, look := _look(watch, now), {MARK_TAG: look})
        for plan_id, watch in watches(store).items()
        if watch.is_due(now)
    )


def _look(watch: Watch, now: datetime) -> str:
    """Name the look that is due: by its number, and by how far the looks are apart, which another end changes."""
    return f"{watch.every.total_seconds():g}:{int((now - watch.since) / watch.every)}"


def notices_due(store: Store, now: datetime) -> tuple[dg.RunRequest, ...]:
    """Request a run that sends notices where some are due; at most one in five minutes."""
    if not (store.notices.unsent(TOLD) or store.notices.due(now)):
        return ()
    number = f"{int(now.timestamp() // _NOTICES_APART)}"
    tags = {REASON_TAG: NOTICES_JOB, MARK_TAG: number}
    return (dg.RunRequest(run_key=f"{NOTICES_JOB}:{number}", job_name=NOTICES_JOB, tags=tags),)


def comparisons_due(
    instance: dg.DagsterInstance, store: Store, now: datetime
) -> Iterator[dg.RunRequest]:
    """Request the comparison of each dual run of which a day is over, by the day."""
    due = {plan_id: dual.due(now) for plan_id, dual in dual_runs(store).items()}
    days = {plan_id: day for plan_id, day in due.items() if day}
    return _until_done(instance, APPLY_JOB, days, now)


def promotions_due(
    instance: dg.DagsterInstance, store: Store, now: datetime
) -> Iterator[dg.RunRequest]:
    """Request the promotion of each plan whose appointment has come, by the appointment."""
    due = appointments_due(store, now)
    numbers = {plan_id: appointment.number for plan_id, appointment in due.items()}
    return _until_done(instance, PROMOTE_JOB, numbers, now)


def _until_done(
    instance: dg.DagsterInstance, job: str, due: Mapping[str, int], now: datetime
) -> Iterator[dg.RunRequest]:
    """Request a run for each plan, by the number of what is due.

    It stays due until a run has done it, or could not: a run that dies before that is requested again, later
    each time. One that a person has cancelled is not.
    """
    tried = tried_lately(instance, now, (job,)) if due else {}
    for plan_id, number in due.items():
        tags = {REASON_TAG: job, PLAN_TAG: plan_id, MARK_TAG: str(number)}
        runs = instance.get_runs(filters=dg.RunsFilter(tags=tags))
        is_kept = any(
            not run.is_finished or run.status is dg.DagsterRunStatus.CANCELED for run in runs
        )
        last = tried.get(named(tags))
        if not is_kept and (last is None or now >= last.rests_until):
            mark = {MARK_TAG: str(number)}
            yield _of_plan(job, plan_id, f"{number}:{len(runs)}", mark)


def _of_plan(
    job: str, plan_id: str, number: int | str, mark: Mapping[str, str] | None = None
) -> dg.RunRequest:
    tags = {REASON_TAG: job, PLAN_TAG: plan_id, PRIORITY_TAG: "10", **(mark or {})}
    key = f"{job}:{plan_id}:{number}"  # Dagster requests a key once
    return dg.RunRequest(run_key=key, job_name=job, run_config=run_config(job, plan_id), tags=tags)
