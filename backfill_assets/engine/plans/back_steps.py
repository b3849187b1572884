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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.ready import ReadyRecord
    from backfill_assets.snapshots.state_view import StateView


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
    back = _read_afterwards(op, moves, only_cells=only_cells)
    going = {
        move.model: _going_back(op, move, at, only_cells=only_cells)
        for move, at in _in_place(moves, pointers)
        if not is_dropped(op.plan.environment, move)
    }
    owed = _stale_then(op, back, going)
    steps: list[Step] = []
    for move in moves:
        at, old = pointers.get(move.model), back[move.model]
        if old is None or is_dropped(op.plan.environment, move):
            continue
        wrong = owed[move.model] | move.stale_before
        if at is not None and move.model in going:
            steps.append(_brought_back(move, at, going[move.model], wrong))
        else:
            steps.append(Step(Move.of(old, at, owed=wrong)))  # no data moves
    return tuple(steps)


def is_dropped(environment: str, move: PointerMove) -> bool:
    """Whether going back leaves no pointer: the model was new, or another environment's is followed."""
    return move.old is None or move.old.environment != environment


def changed_by_undo(op: Operation) -> CellsByModel:
    """Give the cells that an undo of the plan empties, or whose rows it changes, in tables that are read before and after."""
    pointers = op.store.environments.pointers(op.plan.environment)
    changed = CellsByModel()
    for move, at in _in_place(op.store.history.promoting_moves(op.plan_id), pointers):
        going = _going_back(op, move, at, only_cells=True)
        changed |= {move.model: going.differing | going.emptied}
    return changed


def _in_place(
    moves: Iterable[PointerMove], pointers: Mapping[str, Pointer]
) -> Iterator[tuple[PointerMove, Pointer]]:
    """Yield the moves within a table that the environment reads now, too, with where it reads it."""
    for move in moves:
        at = pointers.get(move.model)
        if move.old is not None and at is not None and move.old.version == at.version:
            yield move, at


def _brought_back(undone: PointerMove, at: Pointer, going: _GoingBack, owed: IntervalSet) -> Step:
    """Bring cells of the same table back to what they held, and the definition if the plan changed it."""
    old = undone.old
    assert old is not None  # noqa: S101 - the caller has looked
    source = Layer(old.version, old.delta_version)
    fingerprint = old.fingerprint if undone.redefines else at.fingerprint
    move = Move.of(
        replace(at, fingerprint=fingerprint),
        at,
        copies=(Copy(source, going.cells),) if going else (),
        emptied=going.emptied,
        owed=owed & going.cells,
    )
    rewrite = Rewrite(source, going.cells, going.differing, going.emptied)
    return Step(move, rewrite if going else None)


@dataclass(frozen=True, slots=True)
class _GoingBack:
    """The cells of a table that hold again what they held before a plan.

    Attributes:
        cells: those that come back.
        differing: those of them whose content is another one than now.
        emptied: cells that were not ready then.
    """

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


def _stale_then(
    op: Operation, back: Mapping[str, Pointer | None], going: Mapping[str, _GoingBack]
) -> CellsByModel:
    """Ask the rule what will be stale where the models are brought back to.

    What is published counts as built when it is published; what was stale before that, or has not read
    what stays of its upstreams, must be remembered.
    """
    running = op.environment().graph
    others = {name: model for name, model in running.models.items() if back.get(name, 1)}
    pointers = {name: at for name, at in back.items() if at is not None}
    graph = published_graph(op, pointers, running, others)
    view = _afterwards(op, back, going)
    return CellsByModel(
        {name: to_remember(op.plan, work_there(op, graph, view, name)) for name in pointers}
    )


def _afterwards(
    op: Operation, back: Mapping[str, Pointer | None], going: Mapping[str, _GoingBack]
) -> StateView:
    """Draw what the environment will read: of a table that it keeps, other cells than those that go stay as they are."""
    then = op.store.views.of(op.plan.environment, instead=back)
    now = op.store.views.of(op.plan.environment, only=going)
    stays = {
        name: now.models[name].with_cells_of(then.models[name], cells.cells | cells.emptied)
        for name, cells in going.items()
    }
    return replace(then, models={**then.models, **stays})


def _read_afterwards(
    op: Operation, moves: Sequence[PointerMove], *, only_cells: bool
) -> dict[str, Pointer | None]:
    """Say where each model is read once it went back: where it was read, or where a followed one is now.

    Tables that were left are read with what was carried back into them.
    """
    followed = op.followed_pointers()
    back = {
        move.model: followed.get(move.model) if is_dropped(op.plan.environment, move) else move.old
        for move in moves
    }
    own = op.store.environments.own_pointers(workspace_name(op.undo_id)) if only_cells else {}
    return {
        name: at and replace(at, delta_version=own[name].delta_version) if name in own else at
        for name, at in back.items()
    }
