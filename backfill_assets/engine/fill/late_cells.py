"""Which stale cells of an environment heal by themselves, and which need a plan: from recorded state alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.project.plan_age import open_plans, stands
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.review.policy import closed_to_late_data
from backfill_assets.planning.rule.late_work import KeptBack, late_work
from backfill_assets.snapshots.environment import PROD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.rule.late_work import LateWork
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView


def late_work_of(
    run: RunContext, failed: CellsByModel | None = None, view: StateView | None = None
) -> LateWork:
    """Split the stale cells of a run's environment; from recorded state alone.

    A model that relies on another declaration of a source than is read waits for the plan that makes
    it anew, and what reaches it waits with it.

    Args:
        run: the environment.
        failed: cells that can't be built now, or are not to be, with all that reaches them.
        view: the environment's state; None: as it is now. One of some models and what these read tells
            what is refreshed in place of them: that concerns no other model.
    """
    at_work, outwaited = _plans_of_people(run)
    kept_back = KeptBack(
        by_others=_held_by_plans(at_work),
        in_place=_built_by_plans(at_work),
        failed=(failed or CellsByModel()) | dict.fromkeys(run.misread, _EVERYTHING),
        reserved=partial(_reserved_by_policy, run),
    )
    state = _without_marks(outwaited, view or run.view())
    work = late_work(run.graph, state, kept_back, now=run.until, reads=run.reads)
    planned = {name: cells for name, cells in work.held.items() if name in run.misread}
    return replace(work, waiting=work.waiting | planned, held=work.held - planned)


def in_place_of(
    run: RunContext, works: Mapping[str, Work], view: StateView | None = None
) -> CellsByModel:
    """Give the stale cells of models that the next run builds again in their own tables.

    Args:
        run: the environment; no workspace.
        works: what the rule has found, by model.
        view: as of `late_work_of`.
    """
    if not any(work.refresh for work in works.values()):
        return CellsByModel()
    found = late_work_of(run, view=view).in_place
    return CellsByModel({name: found[name] for name in works})


def late_waits(run: RunContext, late: LateWork, name: str) -> dict[str, IntervalSet]:
    """Give the late cells of a model that others keep back, by what they wait for, in words.

    Args:
        run: the environment.
        late: how its stale cells are split.
        name: which model.
    """
    waits: dict[str, IntervalSet] = {}
    if held := late.held[name]:
        plans = _plans_in_the_way(run, name)
        waits[f"wait for plan {plans}" if plans else next_run(run)] = held
    rowless = late.awaiting(name).items()
    return waits | {f"wait for rows of {source}": cells for source, cells in rowless}


def next_run(run: RunContext) -> str:
    """Name the command that brings late data in; a run of some models, or of a range, does not."""
    name = run.environment.name
    return f"wait for `backfill run{'' if name == PROD else f' --env {name}'}` of all models"


def _plans_in_the_way(run: RunContext, name: str) -> str:
    """Name the open plans that late cells of a model wait for; empty where there is none."""
    plans, _ = _plans_of_people(run)
    theirs = [plan.plan_id for plan in plans if any(part.model == name for part in plan.models)]
    return ", ".join(sorted(theirs or [plan.plan_id for plan in plans]))


def built_without_rows(run: RunContext, name: str, work: Work) -> IntervalSet:
    """Give the published cells of a model that are built again although an observed source has no rows for them.

    Where a plan builds them, they become empty. Where they are refreshed in place, they have lost nothing: those
    that have are not refreshed (`Work.awaits`).
    """
    if not run.environment.is_workspace:
        return work.refresh - IntervalSet.union_all(work.awaits.values())
    follows = run.environment.follows
    return run.store.views.of(follows, only={name}).ready(name) if follows else IntervalSet.empty()


def lease_name(environment: str) -> str:
    """Name the lease of the run that brings late data in, of which there is one at a time."""
    return f"late data of {environment}"


def _plans_of_people(run: RunContext) -> tuple[list[Plan], list[Plan]]:
    """Read the open plans of a run's environment that people have made: those at work, and those that have waited for too long."""
    at_work: list[Plan] = []
    outwaited: list[Plan] = []
    for plan in open_plans(run.store):
        if plan.environment == run.environment.name and not plan.request.late:
            (at_work if stands(run.store, plan, run.clock()) else outwaited).append(plan)
    return at_work, outwaited


def _held_by_plans(plans: Iterable[Plan]) -> CellsByModel:
    """Give what open plans are at work on; one that moves a table has all of it."""
    return CellsByModel.of(
        (planned.model, _EVERYTHING if planned.build is Build.NEW_VERSION else planned.cells)
        for plan in plans
        for planned in plan.models
    )


def _built_by_plans(plans: Iterable[Plan]) -> CellsByModel:
    """Give the cells that open plans build for tables that stay."""
    return CellsByModel.of(
        (planned.model, planned.cells)
        for plan in plans
        for planned in plan.models
        if planned.build is not Build.NEW_VERSION
    )


def policy_mark(project: Project) -> str:
    """Name the policy as it is at this moment: another one may leave other late data to people."""
    try:
        gate = project.gate()
    except BackfillAssetsError:
        return "can't be used"
    return "" if gate is None else gate.digest


def _reserved_by_policy(run: RunContext) -> CellsByModel:
    """Give the cells whose late data the environment's policy lets people approve.

    Where the policy can't be used, or this process lacks it, nothing is refreshed without people: the acts
    that rely on it name the error.
    """
    try:
        gate = gate_in(run.project, run.environment.name)
    except BackfillAssetsError:
        return CellsByModel(dict.fromkeys(run.graph.models, _EVERYTHING))
    if gate is None:
        return CellsByModel()
    reserved = CellsByModel()
    for name, model in run.graph.models.items():
        before = closed_to_late_data(
            gate.policy, run.environment.name, name, run.until, model.cadence.tz
        )
        if before is not None:
            reserved |= {name: _cells_before(model.cadence, before)}
    return reserved


def _cells_before(cadence: Cadence, day: date) -> IntervalSet:
    """Give all that begins before a local day; of a model without cells in time that is everything."""
    if day == date.max or cadence.unit is Unit.WHOLE:
        return _EVERYTHING
    return IntervalSet.of([Interval(WHOLE_CELL.start, start_at(day, cadence.tz))])


def _without_marks(outwaited: Iterable[Plan], view: StateView) -> StateView:
    """Forget what plans owe that have waited for too long: it is rebuilt with what reaches it."""
    planned_cells = (
        (planned.model, planned.cells) for plan in outwaited for planned in plan.models
    )
    return replace(view, owed=view.owed - CellsByModel.of(planned_cells))


_EVERYTHING = IntervalSet.of([WHOLE_CELL])
