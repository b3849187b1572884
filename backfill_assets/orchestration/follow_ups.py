"""The runs that follow up on plans: comparisons of dual runs, promotions at their time, looks at what is published, notices to consumers."""

from collections.abc import Iterator
from datetime import datetime

import dagster as dg

from backfill_assets.engine.review.aftercare import watches
from backfill_assets.engine.review.appointments import appointments_due
from backfill_assets.engine.review.dual_runs import dual_runs
from backfill_assets.orchestration.released_runs import (
    AFTERCARE_JOB,
    APPLY_JOB,
    NOTICES_JOB,
    PLAN_TAG,
    PRIORITY_TAG,
    PROMOTE_JOB,
    REASON_TAG,
    run_config,
)
from backfill_assets.planning.review.notices import TOLD
from backfill_assets.state.store import Store

FOLLOW_UP_JOBS = (APPLY_JOB, PROMOTE_JOB, AFTERCARE_JOB, NOTICES_JOB)
"""Every job that is requested here: the sensor may request no other one."""

_NOTICES_APART = 300
"""How many seconds runs that send notices are apart: one that died is requested again."""


def follow_ups(store: Store, now: datetime) -> Iterator[dg.RunRequest]:
    """Request every run that follows up on a plan at an instant."""
    for due in (comparisons_due, promotions_due, looks_due, notices_due):
        yield from due(store, now)


def looks_due(store: Store, now: datetime) -> tuple[dg.RunRequest, ...]:
    """Request a look at each watched plan that is due; one that died is requested again a while later."""
    return tuple(
        _of_plan(AFTERCARE_JOB, plan_id, int((now - watch.since) / watch.every))
        for plan_id, watch in watches(store).items()
        if watch.is_due(now)
    )


def notices_due(store: Store, now: datetime) -> tuple[dg.RunRequest, ...]:
    """Request a run that sends notices where some are due; at most one in five minutes."""
    if not (store.notices.unsent(TOLD) or store.notices.due(now)):
        return ()
    key = f"{NOTICES_JOB}:{int(now.timestamp() // _NOTICES_APART)}"
    return (dg.RunRequest(run_key=key, job_name=NOTICES_JOB, tags={REASON_TAG: NOTICES_JOB}),)


def comparisons_due(store: Store, now: datetime) -> tuple[dg.RunRequest, ...]:
    """Request the comparison of each dual run of which a day is over, once for each day."""
    due = ((plan_id, dual.due(now)) for plan_id, dual in dual_runs(store).items())
    return tuple(_of_plan(APPLY_JOB, plan_id, day) for plan_id, day in due if day)


def promotions_due(store: Store, now: datetime) -> tuple[dg.RunRequest, ...]:
    """Request the promotion of each plan whose appointment has come, once for each appointment."""
    return tuple(
        _of_plan(PROMOTE_JOB, plan_id, appointment.number)
        for plan_id, appointment in appointments_due(store, now).items()
    )


def _of_plan(job: str, plan_id: str, number: int) -> dg.RunRequest:
    tags = {REASON_TAG: job, PLAN_TAG: plan_id, PRIORITY_TAG: "10"}
    key = f"{job}:{plan_id}:{number}"  # Dagster requests a key once
    return dg.RunRequest(run_key=key, job_name=job, run_config=run_config(job, plan_id), tags=tags)
