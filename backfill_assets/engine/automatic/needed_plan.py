"""The plan that late data needs where late windows end: kept as a proposal for a person, and told of once.

A proposal is made again when what it reads has moved, or when more cells wait; consumers are told again only of
cells that they were not told of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.making import keep, plan_of
from backfill_assets.engine.plans.plan_verbs import abandon_plan, given_up
from backfill_assets.engine.project.plan_age import may_go_on
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.outline import plan_or_outline, why_unreadable
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.plan.stale_inputs import moved_inputs
from backfill_assets.planning.rule.late_work import ASKED_BY
from backfill_assets.snapshots.stored_plan import NOT_ENDED, PlanEventKind, PlanStatus
from backfill_assets.state.plans import NewEvent

if TYPE_CHECKING:
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.rule.late_work import LateWork
    from backfill_assets.snapshots.stored_plan import StoredPlan


def needed_plan(run: RunContext, project: Project, work: LateWork) -> str | None:
    """Give the id of the plan for the cells that wait for one; make it where none stands.

    Args:
        run: the environment.
        project: as if what the environment runs were loaded.
        work: its late cells.

    Returns:
        None: no cell waits, or nothing is left to plan.

    Raises:
        BackfillAssetsError: no plan can be made; each cause has its own class.
    """
    if not work.waiting:
        return None
    return standing_plan(run, work) or _proposed(run, project, work)


def standing_plan(run: RunContext, work: LateWork) -> str | None:
    """Give the id of a plan, of a person too, that builds every cell that waits for one from what is there now.

    Returns:
        None: no cell waits, or there is no such plan.
    """
    if not work.waiting:
        return None
    listed = run.store.plans.latest(run.environment.name, NOT_ENDED)
    return next((plan.plan_id for plan in listed if _answers(run, plan, work)), None)


def _answers(run: RunContext, stored: StoredPlan, work: LateWork) -> bool:
    """Whether a plan, of a person too, builds every cell that waits from what is there now."""
    if not may_go_on(run.store, stored, run.clock()):
        return False
    if work.waiting - stored.cells or why_unreadable(stored):
        return False
    return not moved_inputs(plan_or_outline(stored), run.graph, run.view())


def is_own_proposal(stored: StoredPlan) -> bool:
    """Whether a plan is a proposal for late data that no person has taken up."""
    return stored.status is PlanStatus.PROPOSED and stored.created_by == ASKED_BY


def _proposed(run: RunContext, project: Project, work: LateWork) -> str | None:
    reasons = dict.fromkeys(work.because[name] for name in work.waiting if name in work.because)
    request = PlanRequest(
        environment=run.environment.name,
        asked_by=ASKED_BY,
        reason=f"late data: {'; '.join(reasons)}",
        select=tuple(f"{name}+" for name in work.waiting),
        skip_upstream=True,
    )
    plan = plan_of(project, request)
    if plan.is_empty:
        return None
    before = [
        stored
        for stored in run.store.plans.latest(run.environment.name, NOT_ENDED)
        if is_own_proposal(stored)
    ]
    planned_cells = CellsByModel.of(each for stored in before for each in stored.cells.items())
    needed = NewEvent(plan.plan_id, PlanEventKind.NEEDED, ASKED_BY, request.reason)
    keep(project, plan, needed if work.waiting - planned_cells else None)
    for stored in before:
        if stored.plan_id != plan.plan_id:
            abandon_plan(project, given_up(stored), f"{plan.plan_id} takes its place")
    return plan.plan_id
