"""Which stale cells of an environment heal by themselves, and which need a plan: from recorded state alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.plan_age import open_plans, stands
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.rule.late_work import late_work

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.rule.late_work import LateWork
    from backfill_assets.snapshots.state_view import StateView


def late_work_of(run: RunContext, failed: CellsByModel | None = None) -> LateWork:
    """Split the stale cells of a run's environment; from recorded state alone.

    A model that relies on another declaration of a source than is read waits for the plan that makes
    it anew, and what reaches it waits with it.

    Args:
        run: the environment.
        failed: cells that can't be built now, or are not to be, with all that reaches them.
    """
    work = late_work(
        run.graph,
        _without_marks(run),
        now=run.until,
        reads=run.reads,
        held=_held_by_plans(run),
        failed=(failed or CellsByModel()) | dict.fromkeys(run.misread, _EVERYTHING),
    )
    planned = {name: cells for name, cells in work.held.items() if name in run.misread}
    return replace(work, waiting=work.waiting | planned, held=work.held - planned)


def lease_name(environment: str) -> str:
    """Name the lease of the run that brings late data in, of which there is one at a time."""
    return f"late data of {environment}"


def plans_at_work(run: RunContext) -> list[Plan]:
    """Read the open plans of a run's environment that people have made.

    One that has waited for too long is not at work any more.
    """
    return [plan for plan in _ours(run) if stands(run.store, plan, run.clock())]


def _ours(run: RunContext) -> list[Plan]:
    return [
        plan
        for plan in open_plans(run.store)
        if plan.environment == run.environment.name and not plan.request.late
    ]


def _held_by_plans(run: RunContext) -> CellsByModel:
    """Give what open plans of the environment are at work on; one that moves a table has all of it."""
    return CellsByModel.of(
        (planned.model, _EVERYTHING if planned.build is Build.NEW_VERSION else planned.cells)
        for plan in plans_at_work(run)
        for planned in plan.models
    )


def _without_marks(run: RunContext) -> StateView:
    """Forget what plans owe that have waited for too long: it is rebuilt with what reaches it."""
    view, standing = run.view(), {plan.plan_id for plan in plans_at_work(run)}
    outwaited = (plan for plan in _ours(run) if plan.plan_id not in standing)
    planned_cells = (
        (planned.model, planned.cells) for plan in outwaited for planned in plan.models
    )
    return replace(view, owed=view.owed - CellsByModel.of(planned_cells))


_EVERYTHING = IntervalSet.of([WHOLE_CELL])
