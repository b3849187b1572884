"""What a promotion does to each model: a pointer to a new table, a copy, or only new descriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.rewriting import Rewrite
from backfill_assets.engine.plans.publishing import Step
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Build
from backfill_assets.snapshots.environment import Layer, Pointer, workspace_name
from backfill_assets.snapshots.publication import Copy, Move

if TYPE_CHECKING:
    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.snapshots.state_view import StateView


def tables_to_lock(op: Operation) -> tuple[str, ...]:
    """Name every table that a promotion must hold: those of the workspace, and the environment's."""
    plan, name = op.plan, workspace_name(op.plan_id)
    pointers = op.store.environments.pointers(plan.environment)
    models = [*(planned.model for planned in plan.models if planned.moves), *plan.removed]
    ours = {pointer.version for pointer in op.store.environments.own_pointers(name).values()}
    theirs = {pointers[model].version for model in models if model in pointers}
    owned = {version for version in theirs if op.store.versions.owner(version) == plan.environment}
    return tuple(sorted(ours | owned))


def steps_of(op: Operation, view: StateView) -> tuple[Step, ...]:
    """Decide what moves, model by model; called under the locks.

    Args:
        op: who promotes which plan.
        view: what the environment publishes.
    """
    pointers = op.store.environments.pointers(op.plan.environment)
    own = op.store.environments.own_pointers(workspace_name(op.plan_id))
    owed = _owed_before(op, view)
    steps = (
        _step(op, planned, own[planned.model], pointers.get(planned.model), owed[planned.model])
        for planned in op.plan.models
        if planned.moves
    )
    return tuple(step for step in steps if step is not None)


def _step(
    op: Operation, planned: ModelPlan, built: Pointer, at: Pointer | None, owed: IntervalSet
) -> Step | None:
    """Decide what moves of one model; None for nothing."""
    environment = op.plan.environment
    if at is None or planned.build is Build.NEW_VERSION:
        new = Pointer(
            environment, planned.model, built.fingerprint, built.version, built.delta_version
        )
        return Step(Move.of(new, at, stale_before=owed))
    records = op.store.versions.ready_records(built.version, built.delta_version)
    cells = IntervalSet.of(record.cell for record in records)
    if not cells and built.fingerprint == at.fingerprint:
        return None
    if at.environment != environment or op.store.versions.owner(at.version) != environment:
        # Another environment's table lies under it: the workspace's own becomes the environment's.
        over = replace(built, environment=environment, certain=_NONE)
        return Step(Move.of(over, at, stale_before=owed))
    same = replace(at, fingerprint=built.fingerprint)
    if not cells:
        return Step(Move.of(same, at, stale_before=owed))
    # A cell that only a table below holds is copied too: from now on this one answers for it.
    contents = op.store.versions.held_contents(at.version, cells, at.delta_version)
    differing = IntervalSet.of(
        record.cell for record in records if contents.get(record.cell) != record.content
    )
    source = Layer(built.version, built.delta_version)
    move = Move.of(same, at, stale_before=owed, copies=(Copy(source),))
    over = next((layer.delta_version for layer in built.under if layer.version == at.version), None)
    return Step(move, Rewrite(source, cells, differing, over=over))


def _owed_before(op: Operation, view: StateView) -> CellsByModel:
    """Remember what was owed by another cause than the plan: the publication strikes these marks off.

    What was stale need not be remembered: a way back asks the rule again.
    """
    return CellsByModel(
        {
            name: IntervalSet.union_all(each.cells for each in marks if each.plan_id != op.plan_id)
            for name, marks in view.owing.items()
        }
    )


_NONE = IntervalSet.empty()
