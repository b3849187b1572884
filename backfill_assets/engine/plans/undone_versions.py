"""Days written since a promotion, computed with the old logic before its plan is undone.

The old tables get a workspace of their own, in which the ordinary run fills what they lack.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.plans.carrying_over import not_carried_over, what_lacked
from backfill_assets.engine.plans.leftover import as_text, work_of
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.workspace import WorkspaceModel, WorkspaceRequest

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.snapshots.publication import PointerMove


def undo_id(plan_id: str) -> str:
    """Name the workspace in which a plan is undone."""
    return f"{plan_id}.undo"


def open_old_versions(op: Operation, moves: list[PointerMove]) -> None:
    """Open a workspace that points at the tables which were read before the plan."""
    models = tuple(
        WorkspaceModel(
            replace(one.old, environment=workspace_name(undo_id(op.plan_id))),
            op.store.versions.version_path(one.old.version),
        )
        for one in moves
        if one.old is not None and one.new is not None and one.old.version != one.new.version
        if not one.old.under and one.old.environment == op.plan.environment
    )
    if models:
        op.store.environments.open_workspace(
            WorkspaceRequest(
                plan_id=undo_id(op.plan_id), environment=op.plan.environment, models=models
            )
        )


def carried_back(op: Operation, moves: list[PointerMove]) -> CellsByModel:
    """Compute with the old logic what was published since.

    Raises:
        RequestError: some of it can't be computed, or fails its audits.
    """
    cells = lacking_back(op, moves)
    if not cells:
        return cells
    run = op.run_in(workspace_name(undo_id(op.plan_id)))
    events = fill_cells(run, cells, op.project.listener, batches_at_once=op.project.batches_at_once)
    if left := lacking_back(op, moves):
        raise not_carried_over(op.plan_id, as_text(run.graph, left), what_lacked(events))
    return cells


def lacking_back(op: Operation, moves: list[PointerMove]) -> CellsByModel:
    """Give the cells that are published now and that the old tables lack, by model."""
    name = workspace_name(undo_id(op.plan_id))
    if name not in {one.name for one in op.store.environments.by_name()}:
        return CellsByModel()
    run, published = op.run_in(name), op.store.views.of(op.plan.environment)
    own, view = op.store.environments.own_pointers(name), run.view()
    found = {
        one.model: work_of(run, view, one.model).gaps
        & run.graph.model(one.model).cadence.snap_out(published.ready(one.model))
        for one in moves
        if one.model in own
    }
    return CellsByModel(found)


def drop_carried(op: Operation) -> None:
    """Forget the workspace of an undo."""
    op.store.environments.drop_workspace(undo_id(op.plan_id))


def carried_pins(op: Operation) -> dict[str, int]:
    """Give the pins that old tables are published at, with what was carried back into them."""
    own = op.store.environments.own_pointers(workspace_name(undo_id(op.plan_id)))
    return {name: at.delta_version for name, at in own.items()}
