"""What a promotion does to each model: a pointer to a new table, a copy, or only new descriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.rewriting import Rewrite
from backfill_assets.engine.plans.publishing import Step
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.left import to_remember
from backfill_assets.planning.plan.plan import Build
from backfill_assets.snapshots.environment import Layer, Pointer, workspace_name
from backfill_assets.snapshots.publication import Copy, Move

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import ModelPlan


def tables_to_lock(op: Operation) -> tuple[str, ...]:
    """Name every table that a promotion must hold: those of the workspace, and the environment's."""
    plan, name = op.plan, workspace_name(op.plan_id)
    pointers = op.store.environments.pointers(plan.environment)
    models = [*(planned.model for planned in plan.models if planned.moves), *plan.removed]
    ours = {pointer.version for pointer in op.store.environments.own_pointers(name).values()}
    theirs = {pointers[model].version for model in models if model in pointers}
    owned = {version for version in theirs if op.store.versions.owner(version) == plan.environment}
    return tuple(sorted(ours | owned))


def steps_of(op: Operation) -> tuple[Step, ...]:
    """Decide what moves, model by model; called under the locks."""
    environment = op.environment()
    pointers = op.store.environments.pointers(op.plan.environment)
    own = op.store.environments.own_pointers(workspace_name(op.plan_id))
    stale = _stale_before(op, environment)
    steps = (
        _step(op, planned, own[planned.model], pointers.get(planned.model), stale[planned.model])
        for planned in op.plan.models
        if planned.moves
    )
    return tuple(step for step in steps if step is not None)


def _step(
    op: Operation, planned: ModelPlan, built: Pointer, at: Pointer | None, stale: IntervalSet
) -> Step | None:
    """Decide what moves of one model; None for nothing."""
    environment = op.plan.environment
    if at is None or planned.build is Build.NEW_VERSION:
        new = Pointer(
            environment, planned.model, built.fingerprint, built.version, built.delta_version
        )
        return Step(Move.of(new, at, stale_before=stale))
    records = op.store.versions.ready_records(built.version, built.delta_version)
    cells = IntervalSet.of(record.cell for record in records)
    if not cells and built.fingerprint == at.fingerprint:
        return None
    if at.environment != environment or op.store.versions.owner(at.version) != environment:
        # Another environment's table lies under it: the workspace's own becomes the environment's.
        over = replace(built, environment=environment, certain=_NONE)
        return Step(Move.of(over, at, stale_before=stale))
    same = replace(at, fingerprint=built.fingerprint)
    if not cells:
        return Step(Move.of(same, at, stale_before=stale))
    # A cell that only a table below holds is copied too: from now on this one answers for it.
    contents = op.store.versions.held_contents(at.version, cells, at.delta_version)
    differing = IntervalSet.of(
        record.cell for record in records if contents.get(record.cell) != record.content
    )
    source = Layer(built.version, built.delta_version)
    move = Move.of(same, at, stale_before=stale, copies=(Copy(source),))
    over = next((layer.delta_version for layer in built.under if layer.version == at.version), None)
    return Step(move, Rewrite(source, cells, differing, over=over))


def _stale_before(op: Operation, environment: RunContext) -> CellsByModel:
    """Remember what was stale, or owed by another cause than the plan, for the way back."""
    view, names = environment.view(), [planned.model for planned in op.plan.models if planned.moves]
    remembered = CellsByModel()
    for name in names:
        if name in view.models:
            owing = view.owing.get(name, ())
            owed = IntervalSet.union_all(each.cells for each in owing if each.plan_id != op.plan_id)
            if name in environment.graph.models:  # no rule looks at what is not declared any more
                owed |= to_remember(op.plan, environment.work(name, view))
            remembered |= {name: owed}
    return remembered


_NONE = IntervalSet.empty()
