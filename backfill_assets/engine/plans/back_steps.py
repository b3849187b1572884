"""What going back does to each model: an old pointer again, or old content in the same table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.rewriting import Rewrite
from backfill_assets.engine.plans.published_graph import published_graph, work_there
from backfill_assets.engine.plans.publishing import Step
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.left import to_remember
from backfill_assets.snapshots.environment import Layer, workspace_name
from backfill_assets.snapshots.publication import Copy, Move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.ready import ReadyRecord


def steps_back(
    op: Operation, moves: Sequence[PointerMove], *, only_cells: bool
) -> tuple[Step, ...]:
    """Decide what moves back, model by model; called under the locks.

    Args:
        op: who goes back, from which plan.
        moves: what the plan's promotion moved.
        only_cells: whether only the plan's cells come back, and what was written since stays.
    """
    pointers = op.store.environments.pointers(op.plan.environment)
    pins = _carried_pins(op) if only_cells else {}
    owed = _stale_then(op, moves)
    steps: list[Step] = []
    for move in moves:
        if move.old is None or is_dropped(op.plan.environment, move):
            continue
        at, wrong = pointers.get(move.model), owed[move.model] | move.stale_before
        if at is None or at.version != move.old.version:
            pin = pins.get(move.model, move.old.delta_version)
            old = replace(move.old, delta_version=pin)
            steps.append(Step(Move.of(old, at, owed=wrong)))  # no data moves
        else:
            steps.append(_brought_back(op, move, at, wrong, only_cells=only_cells))
    return tuple(steps)


def _carried_pins(op: Operation) -> dict[str, int]:
    """Give the pins that old tables are published at, with what was carried back into them."""
    own = op.store.environments.own_pointers(workspace_name(op.undo_id))
    return {name: at.delta_version for name, at in own.items()}


def is_dropped(environment: str, move: PointerMove) -> bool:
    """Whether going back leaves no pointer: the model was new, or another environment's is followed."""
    return move.old is None or move.old.environment != environment


def changed_by_undo(op: Operation) -> CellsByModel:
    """Give the cells that an undo of the plan empties, or whose rows it changes, in tables that are read before and after."""
    pointers = op.store.environments.pointers(op.plan.environment)
    changed = CellsByModel()
    for move in op.store.history.promoting_moves(op.plan_id):
        at = pointers.get(move.model)
        if move.old is not None and at is not None and move.old.version == at.version:
            going = _going_back(op, move, at, only_cells=True)
            changed |= {move.model: going.differing | going.emptied}
    return changed


def _brought_back(
    op: Operation, undone: PointerMove, at: Pointer, owed: IntervalSet, *, only_cells: bool
) -> Step:
    """Bring cells of the same table back to what they held, and the definition if the plan changed it."""
    old = undone.old
    assert old is not None  # noqa: S101 - the caller has looked
    going = _going_back(op, undone, at, only_cells=only_cells)
    source = Layer(old.version, old.delta_version)
    fingerprint = old.fingerprint if undone.redefines else at.fingerprint
    move = Move.of(
        replace(at, fingerprint=fingerprint),
        at,
        copies=(Copy(source, going.cells),) if going else (),
        emptied=going.emptied,
        owed=owed & going.before,
    )
    rewrite = Rewrite(source, going.cells, going.differing, going.emptied)
    return Step(move, rewrite if going else None)


@dataclass(frozen=True, slots=True)
class _GoingBack:
    """The cells of a table that hold again what they held before a plan.

    Attributes:
        before: every cell that was ready then.
        cells: those of them that come back.
        differing: those of these whose content is another one than now.
        emptied: cells that were not ready then.
    """

    before: IntervalSet
    cells: IntervalSet
    differing: IntervalSet
    emptied: IntervalSet

    def __bool__(self) -> bool:
        return bool(self.cells or self.emptied)


def _going_back(op: Operation, undone: PointerMove, at: Pointer, *, only_cells: bool) -> _GoingBack:
    """Find the cells of a table that go back: those that the plan published, or every one since."""
    old = undone.old
    assert old is not None  # noqa: S101 - the caller has looked
    before, now = _records(op, old), _records(op, at)
    touched = [
        cell
        for cell in before.keys() | now.keys()
        if (cell in before) != (cell in now) or _is_another(before[cell], now[cell])
        if not only_cells or cell in undone.cells
    ]
    return _GoingBack(
        before=IntervalSet.of(before),
        cells=IntervalSet.of(cell for cell in touched if cell in before),
        differing=IntervalSet.of(
            cell
            for cell in touched
            if cell in before and (cell not in now or before[cell].content != now[cell].content)
        ),
        emptied=IntervalSet.of(cell for cell in touched if cell not in before),
    )


def _records(op: Operation, at: Pointer) -> dict[Interval, ReadyRecord]:
    records = op.store.versions.ready_records(at.version, at.delta_version)
    return {each.cell: each for each in records}


def _is_another(before: ReadyRecord, now: ReadyRecord) -> bool:
    """Whether a cell was built again, or rows moved into it or out of it."""
    return (before.batch_id, before.content) != (now.batch_id, now.content)


def _stale_then(op: Operation, moves: Sequence[PointerMove]) -> CellsByModel:
    """Ask the rule what will be stale where the models are brought back to.

    What is published counts as built when it is published; what was stale before that must be
    remembered.
    """
    instead = _read_afterwards(op, moves)
    running = op.environment().graph
    others = {name: model for name, model in running.models.items() if instead.get(name, 1)}
    back = {name: at for name, at in instead.items() if at is not None}
    graph = published_graph(op, back, running, others)
    view = op.store.views.of(op.plan.environment, instead=instead)
    return CellsByModel(
        {name: to_remember(op.plan, work_there(op, graph, view, name)) for name in back}
    )


def _read_afterwards(op: Operation, moves: Sequence[PointerMove]) -> dict[str, Pointer | None]:
    """Say where each model is read once it went back: where it was read, or where a followed one is now."""
    followed = op.followed_pointers()
    return {
        move.model: followed.get(move.model) if is_dropped(op.plan.environment, move) else move.old
        for move in moves
    }
