"""Give a plan to the run queue, and name the sensor that will release it."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from backfill_assets.cli.output import err, print_json, say
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import queue_plan

if TYPE_CHECKING:
    from backfill_assets.cli.operating import Operating
    from backfill_assets.planning.plan.plan import Plan


def into_queue(at: Operating, plan: Plan, off_peak: str | None, why: str, *, as_json: bool) -> None:
    """Queue a plan, and name the sensor that releases it.

    Raises:
        BackfillAssetsError: the plan can't be queued; see `queue_plan`.
    """
    at.prepare(plan)
    op = Operation(project=at.working(), plan=plan, why=why)
    queued = queue_plan(op, off_peak)
    lacking = _lacking()
    if as_json:
        print_json({**asdict(queued), "lacking": lacking})
        return
    for line in lacking:
        say(line, to=err, style="yellow")
    say(f"Next: backfill show {plan.plan_id} --watch, or backfill pause {plan.plan_id}")
    when = f", in its hours, {queued.off_peak}" if queued.off_peak else ""
    say(f"{plan.plan_id}: in the queue; the gap_fill_sensor releases it{when}.")


def _lacking() -> list[str]:
    """Say what keeps the queue from running, as far as this process can see."""
    if "DAGSTER_HOME" not in os.environ:
        return ["DAGSTER_HOME is not set: it is not known whether a sensor works on the queue"]
    try:
        import dagster as dg  # noqa: PLC0415 - slow to start

        from backfill_assets.orchestration.switches import lacking  # noqa: PLC0415

        with dg.DagsterInstance.get() as instance:
            return list(lacking(instance))
    except Exception as error:  # noqa: BLE001 - the plan is queued, whatever Dagster says
        return [f"Dagster could not be asked whether it works on the queue: {error}"]
