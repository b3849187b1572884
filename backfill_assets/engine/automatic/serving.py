"""Serve a plan: the part of it that one run of the queue carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.stuck import stuck_cells
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.plans.building import run_for_stage
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import apply_plan, end_stuck
from backfill_assets.engine.plans.refusals import refuse_other_code, wrong_status
from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.left import left_of
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.stages import FillGaps, served_stage
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.project import Project
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.plan.plan import ModelPlan, Plan


@dataclass(frozen=True, slots=True)
class Served:
    """What a run did for a plan.

    Attributes:
        cells: the plan's own among the cells that were asked for.
        built: those of them that hold what the plan wants by now.
        published: whether they are read already: gaps are, as soon as they are filled.
    """

    cells: IntervalSet
    built: IntervalSet
    published: bool


def serve(op: Operation, name: str, cells: IntervalSet) -> Served:
    """Build cells of one model of a plan, where the plan builds them.

    Args:
        op: the plan, and who works on it. Its code is that of this process.
        name: the model.
        cells: those that this run carries; others than the plan's are left alone.

    Raises:
        RequestError: the plan is not being applied.
        RequestError: a model of it was edited since it was made.
        RequestError: it does not build this model.
    """
    stage = served_stage(_asked(op, name), cells)
    run, todo = run_for_stage(op, stage), stage.cells[name]
    fill_cells(run, stage.cells, op.project.listener)
    view = run.view()
    remaining = left_of(run.work(name, view), view, name)
    return Served(todo, todo - remaining, published=isinstance(stage, FillGaps))


def finish(project: Project, plan: Plan, why: str = "") -> Outcome:
    """End a plan of which the queue builds nothing more: apply what is built, or say that the rest has failed.

    What has failed for good is not tried again.

    Raises:
        BackfillAssetsError: what is built can't be applied; see `apply_plan`.
    """
    left = stuck_cells(project, plan)
    if not left:
        return apply_plan(project, plan, why)
    return end_stuck(Operation(project=project, plan=plan, why=why), left)


def _asked(op: Operation, name: str) -> ModelPlan:
    status = op.store.plans.get(op.plan_id).status
    if status is not PlanStatus.APPLYING:
        raise wrong_status(op.plan_id, status)
    refuse_other_code(op)
    planned = op.plan.model(name)
    if planned is None or planned.build is Build.POINTER or not planned.cells:
        raise RequestError(
            found=f"plan {op.plan_id} has no cells of {name} to build, nothing was done",
            do=f"look at `backfill show {op.plan_id}`, and launch this without the tag "
            "'backfill/plan'",
        )
    return planned
