"""What going back does to each model: an old pointer again, or old content in the same table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    returning = list(_returning(op, moves, only_cells=only_cells))
    owed = _stale_then(op, moves, returning)
    return tuple(each.step(owed[each.old.model] | each.stale_before) for each in returning)


def is_dropped(environment: str, move: PointerMove, followed: Mapping[str, Pointer]) -> bool:
    """Whether going back leaves an environment no pointer of its own: the model was new, or another one's is followed.

    That one is followed, too, where it has taken over the table since, with its definition.

    Args:
        environment: its name.
        move: what is taken back.
        followed: where the environment that it follows reads each model now.
    """
    old, at = move.old, followed.get(move.model)
    return old is None or old.environment != environment or (at is not None and at.is_as(old))


def changed_by_undo(op: Operation) -> CellsByModel:
    """Give the cells that an undo of the plan empties, or whose rows it changes, in tables that are read before and after."""
    returning = _returning(op, op.store.history.promoting_moves(op.plan_id), only_cells=True)
    return CellsByModel(
        {
            each.old.model: each.going.differing | each.going.emptied
            for each in returning
            if each.going is not None
        }
    )


@dataclass(frozen=True, slots=True)
class _Returning:
    """A model that goes back.

    Attributes:
        old: where it is read afterwards; of a table that stays, at the pin that its cells come back from.
        at: where it is read now; None where it is not.
        going: the cells of a table that stays which go back; None where another table is read afterwards.
        stale_before: cells that were owed before the plan was published.
        since: cells of a table that stays which the definition that goes has made since the plan.
    """

    old: Pointer
    at: Pointer | None
    going: _GoingBack | None
    stale_before: IntervalSet
    since: IntervalSet = field(default_factory=IntervalSet.empty)

    def step(self, owed: IntervalSet) -> Step:
        """Move its pointer back, or bring its cells back.

        Args:
            owed: cells that are wrong afterwards.
        """
        if self.at is None or self.going is None:
            return Step(Move.of(self.old, self.at, owed=owed))  # no data moves
        going, source = self.going, Layer(self.old.version, self.old.delta_version)
        move = Move.of(
            replace(self.old, delta_version=self.at.delta_version),
            self.at,
            copies=(Copy(source, going.cells),),
            emptied=going.emptied,
            owed=(owed & going.cells) | (self.since - going.cells - going.emptied),
        )
        rewrite = Rewrite(source, going.cells, going.differing, going.emptied)
        return Step(move, rewrite if going else None)


def _returning(
    op: Operation, moves: Iterable[PointerMove], *, only_cells: bool
) -> Iterator[_Returning]:
    """Yield the models that go back; tables that were left are read with what was carried back into them."""
    pointers = op.store.environments.pointers(op.plan.environment)
    carried = op.store.environments.own_pointers(workspace_name(op.undo_id)) if only_cells else {}
    followed = op.followed_pointers()
    for move in moves:
        at, old = pointers.get(move.model), move.old
        if old is None or is_dropped(op.plan.environment, move, followed):
            continue
        if at is not None and at.version == old.version:
            definition = old.fingerprint if move.redefines else at.fingerprint
            then = replace(at, fingerprint=definition, delta_version=old.delta_version)
            going = _going_back(op, then, at, move.cells if only_cells else None)
            since = _made_since(op, move, then, at)
            yield _Returning(then, at, going, move.stale_before, since)
        else:
            pin = carried.get(move.model, old).delta_version
            yield _Returning(replace(old, delta_version=pin), at, None, move.stale_before)


def _made_since(op: Operation, move: PointerMove, then: Pointer, at: Pointer) -> IntervalSet:
    """Give the cells that a definition has made since a plan, if the one that comes back computes them otherwise."""
    logic, goes = (op.store.snapshots.get(each.fingerprint).logic for each in (then, at))
    if logic == goes:
        return IntervalSet.empty()
    records = op.store.versions.ready_records(at.version, at.delta_version)
    since = [each for each in records if each.built_at > move.number]
    made = {each.fingerprint for each in since}
    by_it = {each for each in made if op.store.snapshots.get(each).logic == goes}
    return IntervalSet.of(each.cell for each in since if each.fingerprint in by_it)


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


def _going_back(op: Operation, old: Pointer, at: Pointer, only: IntervalSet | None) -> _GoingBack:
    """Find the cells of a table that differ from an older pin: of these ones, or of all."""
    before, now = _records(op, old), _records(op, at)
    touched = [
        cell
        for cell in before.keys() | now.keys()
        if (cell in before) != (cell in now) or _is_another(before[cell], now[cell])
        if only is None or cell in only
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
    op: Operation, moves: Sequence[PointerMove], returning: Sequence[_Returning]
) -> CellsByModel:
    """Ask the rule what will be stale where the models are brought back to.

    What is published counts as built when it is published; what was stale before that, or has not read
    what stays of its upstreams, must be remembered. So must what was computed from cells that are not there
    any more, of which no stamp tells. A cutoff keeps no cell from that: it can be lifted.
    """
    followed, old = op.followed_pointers(), {each.old.model: each.old for each in returning}
    back = {move.model: old.get(move.model, followed.get(move.model)) for move in moves}
    pointers = {name: at for name, at in back.items() if at is not None}
    graph = published_graph(op, pointers, op.environment().graph)
    view = replace(_afterwards(op, back, returning), cutoffs={})
    return CellsByModel(
        {
            name: to_remember(op.plan, work_there(op, graph, view, name))
            | view.models[name].built_elsewhere
            for name in pointers
        }
    )


def _afterwards(
    op: Operation, back: Mapping[str, Pointer | None], returning: Sequence[_Returning]
) -> StateView:
    """Draw what the environment will read: of a table that stays, the cells that do not go back as they are."""
    going = {
        each.old.model: each.going.cells | each.going.emptied
        for each in returning
        if each.going is not None
    }
    then = op.store.views.of(op.plan.environment, instead=back)
    now = op.store.views.of(op.plan.environment, only=going)
    stays = {
        name: now.models[name].with_cells_of(then.models[name], cells)
        for name, cells in going.items()
    }
    return replace(then, models={**then.models, **stays})
