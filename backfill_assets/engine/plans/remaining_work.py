"""What is left to do in a plan: the one rule on its workspace, within its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.plan.left import left_to_do

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.rule.needs_work import Work


def left_in(run: RunContext, plan: Plan) -> CellsByModel:
    """Give the plan's cells that still need work in its workspace, by model."""
    return left_to_do(plan, run.graph, run.view(), plan.until, run.reads)


def to_remember(plan: Plan, work: Work) -> IntervalSet:
    """Give the stale cells that must be owed after a way back, for the rule does not find them again.

    It finds those that read a source with late rows. But when a person takes late data back, that
    must not come again by itself.
    """
    return work.stale_cells if plan.request.late else work.overtaken_cells


def as_text(graph: Graph, cells: CellsByModel) -> dict[str, str]:
    """Write cells by model as ranges."""
    return {
        name: ranges_text(graph.model(name).cadence, model_cells)
        for name, model_cells in cells.items()
    }
