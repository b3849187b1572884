"""What stays owed where a publication takes over a table.

All of its cells count as built with the publication: for the stamps say what they have read there. Of what
they have not read, here or in another environment that reads the same table, no stamp tells afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.published_graph import published_graph, work_there
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.workspace import OwedCells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.publishing import Prepared
    from backfill_assets.snapshots.environment import Pointer

_ELSEWHERE = "it was computed from cells that are not published here"


def owed_with(op: Operation, prepared: Prepared) -> Iterator[OwedCells]:
    """Give the cells that are owed since the publication takes their tables over.

    Args:
        op: who publishes.
        prepared: what moves.
    """
    moves = [step.move for step in prepared.steps if not step.move.in_place]
    tables = {move.pointer.version: move.model for move in moves}
    if tables:
        yield from _built_elsewhere(op, tables)
        yield from _overtaken_elsewhere(op, tables)


def _built_elsewhere(op: Operation, tables: Mapping[str, str]) -> Iterator[OwedCells]:
    """Give the cells that a plan has found in tables and not built again: what they read is not there."""
    name = workspace_name(op.plan_id)
    if not op.store.environments.exists(name):
        return
    view = op.store.views.of(name, only=set(tables.values()))
    for state in view.models.values():
        cells = state.built_elsewhere
        if cells and state.pointer.version in tables:
            yield OwedCells(state.pointer.version, cells, _ELSEWHERE)


def _overtaken_elsewhere(op: Operation, tables: Mapping[str, str]) -> Iterator[OwedCells]:
    """Give the cells that are stale in another environment which reads the same tables, and their stale readers."""
    ours = {op.plan.environment, workspace_name(op.plan_id), workspace_name(op.undo_id)}
    for name in sorted({each.name for each in op.store.environments.by_name()} - ours):
        own = op.store.environments.own_pointers(name)
        shared = {at.model for at in own.values() for layer in at.layers if layer.version in tables}
        if shared:
            yield from _overtaken_in(op, name, own, shared)


def _overtaken_in(
    op: Operation, environment: str, own: Mapping[str, Pointer], shared: set[str]
) -> Iterator[OwedCells]:
    pointers = op.store.environments.pointers(environment)
    graph = published_graph(op, pointers, op.environment().graph)
    view = op.store.views.of(environment)
    reason = f"it was stale when plan {op.plan_id} took over a table that is read here"
    readers = {reader for model in shared for reader in graph.readers(model)}
    for model in sorted(own.keys() & (shared | readers)):
        if cells := work_there(op, graph, view, model).stale_by_models:
            yield OwedCells(own[model].version, cells, reason, environment)
