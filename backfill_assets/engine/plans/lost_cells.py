"""What a publication leaves owed: cells that stay, and were computed from cells that it takes away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.rule.lost_inputs import computed_from
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.workspace import OwedCells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.publishing import Prepared, Step
    from backfill_assets.snapshots.state_view import StateView


def owed_without(op: Operation, view: StateView, prepared: Prepared) -> tuple[OwedCells, ...]:
    """Give the cells that are owed since the publication takes away cells which they were computed from.

    They stand in tables of the environment, and of those that follow it: a development environment, or the
    workspace of another plan, which has built a model of its own from what is read here.

    Args:
        op: who publishes.
        view: what the environment publishes.
        prepared: what moves.
    """
    lost = _taken_away(op, view, prepared)
    if not lost:
        return ()
    steps = {step.move.model: step for step in prepared.steps}
    stay = CellsByModel(
        {name: view.ready(name) for name in view.models if name not in prepared.removed}
        | {name: _untouched(view, step) for name, step in steps.items()}
    )
    owed = [*_owed(op, view, lost, stay)]
    for name in _followers(op):
        there = op.store.views.of(name)
        own = {model: there.own(model) for model in there.models}
        read = CellsByModel({model: there.ready(model) for model in there.models}) - own
        owed += _owed(op, there, lost & read, own)
    return tuple(owed)


def _owed(
    op: Operation, view: StateView, lost: CellsByModel, stay: Mapping[str, IntervalSet]
) -> Iterator[OwedCells]:
    graph = op.run_in(view.environment.name).graph
    for name, cells in (computed_from(graph, view, lost) & stay).items():
        reason = f"what it was computed from went with plan {op.plan_id}"
        yield OwedCells(view.models[name].pointer.version, cells, reason)


def _followers(op: Operation) -> Iterator[str]:
    """Name the environments that read what this one publishes, but for the plan's own workspaces."""
    ours = {op.plan.environment, workspace_name(op.plan_id), workspace_name(op.undo_id)}
    for each in op.store.environments.by_name():
        if each.name not in ours and op.plan.environment in op.store.views.followed(each.name):
            yield each.name


def _taken_away(op: Operation, view: StateView, prepared: Prepared) -> CellsByModel:
    """Give the ready cells of the models that move which are not ready any more afterwards."""
    moves = [step.move for step in prepared.steps]
    lost = {move.model: move.emptied for move in moves if move.in_place}
    elsewhere = {move.model: move.pointer for move in moves if not move.in_place}
    gone = CellsByModel({name: view.ready(name) for name in (*elsewhere, *prepared.removed)})
    if gone and elsewhere:
        there = op.store.views.view_with(op.plan.environment, elsewhere)
        gone = gone - {name: there.ready(name) for name in elsewhere}
    if gone and view.environment.follows is not None:  # another environment's are followed again
        there = op.store.views.of(view.environment.follows)
        gone = gone - {name: there.ready(name) for name in prepared.removed}
    return CellsByModel(lost) | gone


def _untouched(view: StateView, step: Step) -> IntervalSet:
    """Give the ready cells of a model that moves which hold afterwards what they hold now."""
    if not step.move.in_place:
        return IntervalSet.empty()
    copied = IntervalSet.empty() if step.rewrite is None else step.rewrite.cells
    return view.ready(step.move.model) - copied - step.move.emptied
