"""What a publication leaves owed: cells that stay, and were computed from cells that it takes away.

The rule compares when cells were built and when what they read changed. A cell that is gone has no such
stamp, and one that another table answers for has that table's. So what was computed from them and goes on being
read is found here, once; what is left together with them, where it is read again (`foreign_cells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.rule.lost_inputs import cells_reading_by_upstream
from backfill_assets.snapshots.environment import plan_of
from backfill_assets.snapshots.publication import TakenAway, gone_with
from backfill_assets.snapshots.workspace import OwedCells

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.publishing import Prepared
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.snapshots.state_view import StateView

_NONE = IntervalSet.empty()


def owed_without(
    op: Operation, view: StateView, prepared: Prepared
) -> tuple[tuple[OwedCells, ...], TakenAway]:
    """Give the cells that are owed since the publication takes away cells which they were computed from.

    They stand in tables of the environment and of those that follow it: a development environment, or the
    workspace of another plan. Where a table loses cells and stays, they also stand in tables that no environment reads
    at the moment: another way back, or a plan of the same logic, may publish these again.

    Args:
        op: who publishes.
        view: what the environment publishes.
        prepared: what moves.

    Returns:
        The cells, and where more may come before the publication.
    """
    after = _read_afterwards(op, view, prepared)
    lost = _lost(op, view, prepared, after)
    if not lost.cells:
        return (), TakenAway()
    names, stay = _reading_environments(op), _Staying(prepared)
    read = _read_tables(op, names)
    heads = {each: op.store.versions.known_head(each) for each in read if stay.is_alone(each)}
    taken = TakenAway(tuple(lost.cells), heads)
    moves = op.store.history.promoting_moves(op.plan_id)
    readers = _Readers(
        op=op,
        cadences=_cadences(op, view, lost.cells),
        since=min((move.number for move in moves), default=0),
        ours=frozenset(op.store.views.followed(op.plan.environment)),
    )
    snapshots = (op.store.versions.snapshots() if lost.here else {}) | read
    left = {view.models[name].pointer.version for name in after}
    go_on = read.keys() - left
    computed = [
        *((table, lost.cells if table in go_on else lost.here, None) for table in snapshots),
        *((table, lost.elsewhere, name) for name, table in _kept_by_others(op, names, left)),
    ]
    owed = (
        OwedCells(
            table,
            stay.of(table, readers.of(table, snapshots[table], cells)),
            gone_with(op.plan_id),
            environment,
        )
        for table, cells, environment in computed
    )
    return tuple(each for each in owed if each.cells), taken


def _kept_by_others(
    op: Operation, names: Iterable[str], left: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Name those of some environments that go on reading a table which this one leaves, each with the table."""
    for name in names:
        if name != op.plan.environment:
            own = op.store.environments.own_pointers(name)
            read = {layer.version for at in own.values() for layer in at.layers}
            yield from ((name, table) for table in sorted(read.intersection(left)))


@dataclass(frozen=True, slots=True)
class _Lost:
    """Cells that are not read any more as they were.

    Attributes:
        here: their table is read without them from now on.
        elsewhere: their table is left, and holds them where it is read again.
    """

    here: CellsByModel
    elsewhere: CellsByModel

    @property
    def cells(self) -> CellsByModel:
        """All of them."""
        return self.here | self.elsewhere


@dataclass(frozen=True, slots=True)
class _Readers:
    """Finds the cells of tables that were built when lost cells were there to be read.

    Attributes:
        op: who publishes.
        cadences: of the models of which cells are lost, as they run before.
        since: the counter when the first of them was published; 0 where that is not known.
        ours: the environment, the one that it follows, and so on.
    """

    op: Operation
    cadences: Mapping[str, Cadence]
    since: int
    ours: frozenset[str]

    def of(self, table: str, fingerprint: str, lost: CellsByModel) -> IntervalSet:
        """Give those of a table, which the cells of a snapshot stand in."""
        model = self.op.store.snapshots.get(fingerprint).declared
        return IntervalSet.union_all(
            self._built(table, name, cells)
            for name, cells in cells_reading_by_upstream(self.cadences, model, lost)
        )

    def _built(self, table: str, name: str, cells: IntervalSet) -> IntervalSet:
        """Give those of some cells of a table that were computed from a model's lost cells."""
        ever = self.op.store.versions.records_ever(table, cells)
        records = [each for each in ever if each.built_at >= self.since]
        inputs = self.op.store.batches.inputs_of(each.batch_id for each in records)
        elsewhere = {batch for batch, pins in inputs.items() if not self._may_read(pins, name)}
        return IntervalSet.of(each.cell for each in records if each.batch_id not in elsewhere)

    def _may_read(self, pins: tuple[InputPin, ...], name: str) -> bool:
        """Whether a batch may have read a model as the environment does, not in another one's table."""
        tables = [pin.version for pin in pins if pin.upstream == name]
        return not tables or any(self._is_ours(table) for table in tables)

    def _is_ours(self, table: str) -> bool:
        if not self.op.store.versions.is_known(table):
            return True
        owner = self.op.store.versions.owner(table)
        return owner is None or owner in self.ours or plan_of(owner) is not None


class _Staying:
    """Knows the cells that a publication itself puts into tables: they were not computed from what it takes away."""

    def __init__(self, prepared: Prepared) -> None:
        steps = {step.move.pointer.version: step for step in prepared.steps}
        self._steps = steps
        self._whole = {table for table, step in steps.items() if not step.move.in_place}

    def is_alone(self, table: str) -> bool:
        """Whether the publication leaves a table as it is."""
        return table not in self._steps

    def of(self, table: str, cells: IntervalSet) -> IntervalSet:
        """Give those of some cells of a table that hold afterwards what they hold now."""
        if table in self._whole:
            return _NONE
        step = self._steps.get(table)
        if step is None or not cells:
            return cells
        copied = _NONE if step.rewrite is None else step.rewrite.cells
        return cells - copied - step.move.emptied


def _lost(
    op: Operation, view: StateView, prepared: Prepared, after: Mapping[str, Pointer | None]
) -> _Lost:
    moves = (step.move for step in prepared.steps)
    emptied = CellsByModel({move.model: move.emptied for move in moves if move.in_place})
    return _Lost(emptied, _left_out(op, view, after) | _replaced(op, view, prepared, after))


def _cadences(op: Operation, view: StateView, names: Iterable[str]) -> dict[str, Cadence]:
    """Give the cadences of what the environment runs; a model that is removed is not declared any more."""
    runs = {name: view.models[name].pointer.fingerprint for name in names}
    snapshots = op.store.snapshots
    return {name: snapshots.get(of).declared.cadence for name, of in runs.items()}


def _read_tables(op: Operation, names: Iterable[str]) -> dict[str, str]:
    """Give the tables that environments read, with a snapshot of each."""
    return {
        layer.version: at.fingerprint
        for name in names
        for at in op.store.environments.pointers(name).values()
        for layer in at.layers
    }


def _reading_environments(op: Operation) -> list[str]:
    """Name the environment, and those that read what it publishes."""
    return [
        each.name
        for each in op.store.environments.by_name()
        if op.plan.environment in op.store.views.followed(each.name)
    ]


def _left_out(op: Operation, view: StateView, after: Mapping[str, Pointer | None]) -> CellsByModel:
    """Give the ready cells of models that are read from another table, or from none, which that one lacks."""
    if not after:
        return CellsByModel()
    there = op.store.views.of(op.plan.environment, instead=after)
    return CellsByModel({name: view.ready(name) - there.ready(name) for name in after})


def _replaced(
    op: Operation, view: StateView, prepared: Prepared, after: Mapping[str, Pointer | None]
) -> CellsByModel:
    """Give the cells that another table answers for otherwise.

    The cells of a table that begins to answer are compared and stamped when it is published, but not
    those of tables under it, or of an environment that is followed again.
    """
    moved, replaced = {step.move.model for step in prepared.steps}, CellsByModel()
    for name, at in after.items():
        if at is not None and (at.under or name not in moved):
            now = view.ready(name)
            stamped = _held(op, at, now) if name in moved else _NONE
            replaced |= {name: _differing(op, view.models[name].pointer, at, now - stamped)}
    return replaced


def _held(op: Operation, at: Pointer, cells: IntervalSet) -> IntervalSet:
    """Give those of some cells that the uppermost table of a pointer holds."""
    return IntervalSet.of(op.store.versions.held_contents(at.version, cells, at.delta_version))


def _differing(op: Operation, old: Pointer, new: Pointer, cells: IntervalSet) -> IntervalSet:
    """Give those of some cells that hold something else where they are read afterwards."""
    before, after = (op.store.views.contents_at(at, cells) for at in (old, new))
    return IntervalSet.of(cell for cell, was in before.items() if after.get(cell) != was)


def _read_afterwards(
    op: Operation, view: StateView, prepared: Prepared
) -> Mapping[str, Pointer | None]:
    """Say where models are read afterwards whose tables the environment leaves; None for nowhere."""
    followed = op.followed_pointers()
    moved = {
        step.move.model: step.move.pointer for step in prepared.steps if not step.move.in_place
    }
    leaving = (name for name in (*prepared.removed, *moved) if name in view.models)
    return {name: moved.get(name, followed.get(name)) for name in leaving}
