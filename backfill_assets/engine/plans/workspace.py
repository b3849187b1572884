"""A plan's workspace, an environment that follows the one whose history changes: opened, and closed with its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.plans.back_steps import is_dropped
from backfill_assets.engine.plans.rollback_checks import moves_to_take_back
from backfill_assets.engine.project.opening import save_snapshot
from backfill_assets.engine.project.run_context import table_path
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.graph import stored_graph
from backfill_assets.planning.plan.plan import Build, Why
from backfill_assets.planning.plan.stages import Logic
from backfill_assets.snapshots.environment import Pointer, workspace_name
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.stored_plan import NOT_ENDED, PlanEventKind, PlanStatus
from backfill_assets.snapshots.workspace import OwedCells, WorkspaceModel, WorkspaceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.planning.plan.stages import Close, OpenWorkspace
    from backfill_assets.snapshots.cutoff import Cutoff
    from backfill_assets.snapshots.snapshot import Snapshot

_NONE = IntervalSet.empty()


def open_workspace(op: Operation, stage: OpenWorkspace, so_far: Outcome) -> Outcome:
    """Open a plan's workspace in one transaction; one that is open stays as it is.

    Raises:
        RequestError: that of an undo: the way back is closed.
    """
    request = _new(op) if stage.logic is Logic.NEW else _old(op)
    if request is not None:
        op.store.environments.open_workspace(request)
    return so_far


def close(op: Operation, stage: Close, so_far: Outcome) -> Outcome:
    """End a plan with a status; one that has it already keeps it.

    A publication has set the status itself, and has dropped the plan's workspace. What an abandoned
    plan built is left for collection.

    Raises:
        CellsClaimedError: a live batch is building in the plan's workspace.
    """
    store = op.store
    store.environments.drop_workspace(op.undo_id)
    if stage.status is PlanStatus.ABANDONED:
        store.environments.drop_workspace(op.plan_id)
    if store.plans.get(op.plan_id).status is not stage.status:
        abandoned = stage.status is PlanStatus.ABANDONED
        told = op.event(PlanEventKind.ABANDONED) if abandoned else None
        store.plans.set_plan_status(op.plan_id, NOT_ENDED, stage.status, told)
        if abandoned:
            store.environments.drop_workspace(op.plan_id)  # one that was opened in between
    return replace(so_far, status=stage.status)


def _new(op: Operation) -> WorkspaceRequest:
    """Ask for tables that the plan's declarations are built in."""
    plan, environment = op.plan, op.environment()
    for snapshot in planned_snapshots(op, environment).values():
        save_snapshot(op.store, snapshot)
    return WorkspaceRequest(
        plan_id=plan.plan_id,
        environment=plan.environment,
        models=tuple(_model(op, environment, planned) for planned in plan.models if planned.moves),
        owed=tuple(owed for planned in plan.models for owed in _owed(op, planned)),
        cutoffs=_cutoffs(plan),
    )


def _old(op: Operation) -> WorkspaceRequest | None:
    """Ask for the tables that were read before the plan; None where only cells of a table come back."""
    moves, followed = moves_to_take_back(op, PublicationKind.UNDO), op.followed_pointers()
    models = tuple(
        WorkspaceModel(
            replace(move.old, environment=workspace_name(op.undo_id)),
            op.store.versions.version_path(move.old.version),
        )
        for move in moves
        if move.old is not None and move.new is not None and move.old.version != move.new.version
        if not move.old.under and not is_dropped(op.plan.environment, move, followed)
    )
    if not models:
        return None
    return WorkspaceRequest(plan_id=op.undo_id, environment=op.plan.environment, models=models)


def _cutoffs(plan: Plan) -> dict[str, Cutoff | None]:
    """Give what the plan sets itself, by model, and None for what it lifts."""
    lifted = dict[str, "Cutoff | None"].fromkeys(plan.request.lift_cutoffs)
    own = {
        planned.model: planned.kept_before
        for planned in plan.models
        if planned.kept_before is not None
    }
    return lifted | {name: cutoff for name, cutoff in own.items() if not cutoff.plan_id}


def planned_snapshots(op: Operation, environment: RunContext) -> dict[str, Snapshot]:
    """Take the snapshots that the plan lets run, as the loaded code and the environment give them."""
    names = [
        planned.model
        for planned in op.plan.models
        if planned.fingerprint != planned.old_fingerprint
    ]
    snapshots = _snapshots_afterwards(op, environment, names) if names else {}
    return {name: snapshots[name] for name in names if name in snapshots}


def _snapshots_afterwards(
    op: Operation, environment: RunContext, loaded: list[str]
) -> dict[str, Snapshot]:
    """Take snapshots of the models that the environment will run: some as they are loaded."""
    models = {
        name: model
        for name, model in environment.graph.models.items()
        if name not in op.plan.removed
    }
    graph = op.project.loaded.graph
    models |= {name: graph.models[name] for name in loaded if name in graph.models}
    return snapshots_of(stored_graph(models.values(), graph.sources.values()))


def restated_cells_of(planned: ModelPlan) -> IntervalSet:
    """Give the cells of a model that a plan declares wrong."""
    return IntervalSet.union_all(
        work.cells for work in planned.work if work.why is Why.RESTATED and work.certain
    )


def _model(op: Operation, environment: RunContext, planned: ModelPlan) -> WorkspaceModel:
    pointer = _pointer(op, environment, planned)
    return WorkspaceModel(pointer, table_path(op.data_root, planned.model, pointer.version))


def _pointer(op: Operation, environment: RunContext, planned: ModelPlan) -> Pointer:
    name = workspace_name(op.plan_id)
    if planned.build is Build.NEW_VERSION:
        return Pointer(name, planned.model, planned.fingerprint, planned.version, -1)
    at = environment.pointers[planned.model]
    in_place = planned.build is Build.IN_PLACE
    certain = planned.certain - _filled_since(op, environment, planned) if in_place else _NONE
    version = f"{at.version}__{op.plan_id}"
    fingerprint = (
        at.fingerprint if planned.fingerprint == planned.old_fingerprint else planned.fingerprint
    )
    return Pointer(name, planned.model, fingerprint, version, -1, at.layers, certain)


def _filled_since(op: Operation, environment: RunContext, planned: ModelPlan) -> IntervalSet:
    """Give the gaps that were filled since the plan was made, by the definition that it builds them with.

    They are read as they are published. A plan that restates builds in any case what it has listed.
    """
    if op.plan.request.restate or planned.fingerprint != planned.old_fingerprint:
        return _NONE
    gaps = IntervalSet.union_all(work.cells for work in planned.work if work.why is Why.GAP)
    if not gaps:
        return gaps
    view = op.store.views.of(environment.environment.name, only={planned.model})
    return gaps & view.ready(planned.model)


def _owed(op: Operation, planned: ModelPlan) -> Iterator[OwedCells]:
    """What a plan restates is owed until it is rebuilt and published, or abandoned.

    A new table may hold cells already: from before they were declared wrong, or from before the plan took
    away what they read.
    """
    cells = restated_cells_of(planned)
    reason = op.plan.request.reason or f"restated by plan {op.plan_id}"
    if cells and planned.old_version:
        yield OwedCells(planned.old_version, cells, reason)
    if planned.build is Build.NEW_VERSION and (again := _built_again(planned)):
        yield OwedCells(planned.version, again, reason)


def _built_again(planned: ModelPlan) -> IntervalSet:
    """Give the ready cells that a plan builds again for certain."""
    return IntervalSet.union_all(
        work.cells
        for work in planned.work
        if work.certain and work.why not in (Why.NEW_SNAPSHOT, Why.GAP)
    )
