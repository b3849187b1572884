"""Find the cells of a plan that the rule still asks for in its workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.rule.needs_work import needs_work

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView


def left_of(work: Work, view: StateView, name: str) -> IntervalSet:
    """Give the cells of one model that are left to build where a plan builds them.

    In an environment these are its gaps. In a workspace they are all that the rule finds, waiting cells
    included; only late data that arrived since does not rebuild what the workspace has built, unless the
    published cell has read it.

    Args:
        work: what the rule found in the view.
        view: the state as the environment or the workspace sees it.
        name: the model.
    """
    if not view.environment.is_workspace:
        return work.gaps
    late = work.late_cells - view.own(name)
    return work.gaps | work.stale_by_models | work.owed | late | work.older


def left_to_do(
    plan: Plan,
    graph: Graph,
    workspace: StateView,
    now: datetime,
    reads: Mapping[str, Mapping[str, frozenset[str]]],
) -> CellsByModel:
    """Give the plan's cells that still need work, by model; empty once the plan can be promoted.

    A cell that the plan has built stays built when its source gets late rows: the audited cell is
    promoted, and these rows are the next late data. A model whose gaps the plan fills, and that is declared
    no more, needs no work.

    Args:
        plan: the plan.
        graph: the models that its workspace runs.
        workspace: the state as the workspace sees it.
        now: the instant that history ends at.
        reads: per model, what it reads by column.
    """
    cells = CellsByModel()
    for planned in plan.models:
        model = graph.models.get(planned.model)
        if not planned.cells or model is None:
            continue
        work = needs_work(
            graph,
            workspace,
            model,
            now=now,
            reads=reads[planned.model],
            ignore_cron=True,  # the plan says which cells it builds
        )
        # Gaps are filled where readers are: what is stale there is not built in the workspace.
        left = left_of(work, workspace, planned.model) if planned.built_apart else work.gaps
        cells |= {planned.model: left & planned.cells}
    return cells


def to_remember(plan: Plan, work: Work) -> IntervalSet:
    """Give the stale cells that must be owed after a way back, for the rule does not find them again.

    It finds those that read a source with late rows. But when a person takes late data back, that
    must not come again by itself.
    """
    return work.stale_cells if plan.request.late else work.stale_by_models
