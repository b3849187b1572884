"""What is looked at for work: prod, and what every plan fills and builds. No Spark, no table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.automatic.scenes import Scene
from backfill_assets.engine.project.opening import look, open_run
from backfill_assets.errors import RequestError
from backfill_assets.models.automation import Automation
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.stages import BuildCells, FillGaps, apply_stages
from backfill_assets.snapshots.environment import PROD, workspace_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.stored_plan import StoredPlan


def looking(project: Project) -> Project:
    """Give a project to those who look for work: at one instant, and without Spark."""
    now = project.clock()
    return replace(project, clock=lambda: now, spark=no_spark)


def prod_scene(project: Project, plans: Sequence[StoredPlan]) -> Scene:
    """Look at prod; cells that its open plans have are theirs."""
    run, declared = open_run(project, PROD), project.loaded.graph.models
    there = project.store.environments.pointers(PROD)
    names = [
        name
        for name in run.graph.order
        if name in declared
        and name in there
        and declared[name].automated is not Automation.OFF
        and run.graph.models[name].cadence.grid == declared[name].cadence.grid
    ]
    others = CellsByModel.of(
        each for plan in plans if plan.environment == PROD for each in plan.cells.items()
    )
    return Scene(run, there, names, others=others)


def plan_scenes(project: Project, plan: Plan) -> Iterator[Scene]:
    """Give the environment whose gaps a plan fills, and the workspace where it builds the rest."""
    for stage in apply_stages(plan):
        match stage:
            case FillGaps(cells):
                environment = plan.environment
            case BuildCells(cells):
                environment = workspace_name(plan.plan_id)
            case _:
                continue
        within = CellsByModel(cells)
        if not within:
            continue
        run = replace(
            look(project, environment),
            plan_id=plan.plan_id,
            until=plan.until,
            batch_cells=plan.batch_cells,
        )
        there = project.store.environments.pointers(environment)
        names = [name for name in run.graph.order if name in within and name in there]
        yield Scene(run, there, names, within=within)


def no_spark() -> Any:  # noqa: ANN401 - there is none
    """Stand for Spark where recorded state is enough.

    Raises:
        RequestError: always.
    """
    raise RequestError(
        found="looking for work needs no Spark, and something asked for it", do="report it"
    )
