"""The step of an asset in a run that serves a plan: built in the plan's workspace, and reported."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from backfill_assets.engine.automatic.serving import Served, serve
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.project.events import Event, Skipped, Waiting
from backfill_assets.intervals.text import counted
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.launches import who_launched
from backfill_assets.orchestration.released_runs import PLAN_TAG
from backfill_assets.orchestration.reporting import Reporter
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.orchestration.steps import failing_alone, finish_step, targeted_cells
from backfill_assets.planning.plan.plan import Build, Plan
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.environment import PROD, workspace_name
from backfill_assets.snapshots.loaded import Loaded


@dataclass
class PlanReporter(Reporter):
    """Reports what a run did for a plan: nothing of it is published in prod yet.

    Attributes:
        plan_id: the plan.
    """

    plan_id: str = ""

    def built(self, event: Event) -> None:
        """Report one event of the workspace."""
        match event:
            case Waiting():
                self.listen(event)
            case Skipped():
                self.context.log.info("%s built already", counted(len(event.built_by), "cell"))
            case _:
                self.rebuilding(event)

    def served(self, done: Served) -> None:
        """Report what became of the run's cells."""
        self._found_for(self.plan_id, done.built)
        if new := done.built - self.reported:
            why = (
                f"built, waiting for plan {self.plan_id}: published history changes with "
                f"`backfill promote {self.plan_id}`"
                if self.environment == PROD
                else f"built in {self.environment} for plan {self.plan_id}; {PROD} is as it was"
            )
            self._observed(new, why, {"plan": self.plan_id})
        self._left_to_do(done.cells - done.built, self.plan_id)


def serve_plan(
    context: dg.AssetExecutionContext,
    graph: Graph,
    name: str,
    *,
    spark: SparkResource,
    state: StateResource,
) -> Iterator[Any]:
    """Build the cells of a plan that the run carries, and report every one of them.

    Raises:
        dagster.Failure: cells are still not built; it says which and why.
        BackfillAssetsError: the plan can't go on.
    """
    plan = read_plan(state.store.plans.get(context.run.tags[PLAN_TAG]).content)
    reporter = PlanReporter(
        context, graph.model(name), state.store, plan.environment, plan_id=plan.plan_id
    )
    with failing_alone(reporter):
        who = str(who_launched(context.run))
        listener = reporter.listen if _fills(plan, name) else reporter.built
        project = state.project(Loaded.of(graph), context.run.run_id, spark, who)
        code = project.loaded.fingerprints
        op = Operation(project=replace(project, listener=listener, code=lambda: code), plan=plan)
        done = serve(op, name, targeted_cells(context, reporter.model))
        reporter.served(done)
        metadata = {"plan": plan.plan_id} if done.published else _same_content(op, name, done)
        yield from finish_step(reporter, metadata)


def _fills(plan: Plan, name: str) -> bool:
    """Whether prod reads at once what is built: its gaps are filled in the tables that it reads."""
    planned = plan.model(name)
    return plan.environment == PROD and planned is not None and planned.build is Build.GAP_FILL


def _same_content(op: Operation, name: str, done: Served) -> dict[str, Any]:
    """Count the cells that equal the published ones: their readers are not built again."""
    store, cells = op.store, done.built
    new = store.views.content_at_pin(workspace_name(op.plan_id), name, cells)
    old = store.views.content_at_pin(op.plan.environment, name, cells)
    same = sum(old.get(cell) == content for cell, content in new.items())
    return {"plan": op.plan_id, "cells_built": len(new), "cells_same_content": same}
