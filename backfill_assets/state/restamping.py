"""Restamp the ready records of a publication, so that only what really differs counts as changed.

Published cells count as built at the publication's number, for they have read exactly what is
published with them; only what differs from what people read before has changed then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading
from backfill_assets.models.content import changed_at
from backfill_assets.models.retyped import as_another_type
from backfill_assets.state import layers, owed, pointers, ready, snapshots
from backfill_assets.state.tables import OWED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import Move, Publication
    from backfill_assets.snapshots.ready import ReadyRecord

_ALL = IntervalSet.of([WHOLE_CELL])


@dataclass(frozen=True, slots=True)
class PublishedMove:
    """What one model's move has published.

    Attributes:
        cells: all of it.
        changed: those whose content differs from what people read before, or that are removed.
        built: by the number at which its inputs were really pinned: which cells.
    """

    cells: IntervalSet
    changed: IntervalSet
    built: Mapping[int, IntervalSet]


def published(
    connection: sa.Connection, move: Move, old: Pointer | None, number: int
) -> PublishedMove:
    """Write the ready records of a move, before its pointer is put."""
    if old is not None and old.version == move.pointer.version:
        return _copied(connection, move, old, number)
    return _taken_over(connection, move.pointer, old, number)


def read_instead(connection: sa.Connection, old: Pointer, now: Pointer) -> PublishedMove:
    """Compare what is read at two pointers, where nothing is published at the second one: no record is written."""
    before = _comparable(connection, old, now, _ALL)
    after = layers.records(connection, now, _ALL)
    lost = IntervalSet.of(before) - IntervalSet.of(after)
    return _result([], before, lost, _others(after, before))


def strike_rebuilt(
    connection: sa.Connection, new: Pointer, old: Pointer | None, done: PublishedMove
) -> None:
    """Strike off what a publication has rebuilt, unless it was built before the cells were owed.

    Marks of everyone on a table that the environment leaves, or that lies under its own, stay: it is
    as wrong as before.
    """
    beneath = {layer.version for at in (new, old) if at is not None for layer in at.layers}
    ours = sa.and_(OWED.c.version.in_(sorted(beneath)), OWED.c.environment == new.environment)
    selected = sa.or_(OWED.c.version == new.version, ours)
    if connection.execute(sa.select(OWED.c.since).where(selected).limit(1)).first() is None:
        return
    for built_at, cells in done.built.items():
        owed.strike(connection, cells, sa.and_(selected, OWED.c.since < built_at))


def outdate_overtaken(connection: sa.Connection, publication: Publication, number: int) -> None:
    """Let published cells count as built at the last look before it, where what they read has changed since.

    Cells count as built at the number of their publication, but have not read what others have published
    meanwhile: in other models, or in tables of other environments that lie under its own.

    Args:
        connection: to the state.
        publication: whose pointers have moved.
        number: its own.
    """
    moved = {each.model for each in publication.moves}
    read = pointers.pointers(connection, publication.environment) if publication.pins else {}
    beside = {
        model: at
        for model, at in read.items()
        if at.under
        or (model not in moved and at.delta_version > publication.pins.get(at.version, -1))
    }
    late = _Late(connection, publication.seen, number, beside)
    for new in (move.pointer for move in publication.moves) if beside else ():
        cells = late.read_by(new.fingerprint)
        held = ready.records_within(connection, new.version, new.delta_version, cells).values()
        overtaken = [each for each in held if each.built_at == number]
        ready.restamp(connection, (replace(each, built_at=publication.seen) for each in overtaken))


@dataclass
class _Late:
    """Cells that others have changed between two numbers.

    Attributes:
        connection: to the state.
        seen: the number of the last look.
        number: the number of the publication, which is not theirs.
        beside: where models are read that may have changed.
    """

    connection: sa.Connection
    seen: int
    number: int
    beside: Mapping[str, Pointer]
    _changed: dict[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])

    def read_by(self, fingerprint: str) -> IntervalSet:
        """Give the cells of a snapshot's model that read some of them; all where a model is not known."""
        own = snapshots.model(self.connection, fingerprint)
        if own is None:
            return _ALL if any(map(self._cells, self.beside)) else IntervalSet.empty()
        reads = [upstream for upstream in own.reads if upstream.name in self.beside]
        return IntervalSet.union_all(
            self._reading(own, upstream) for upstream in reads if self._cells(upstream.name)
        )

    def _reading(self, own: Model, upstream: Upstream) -> IntervalSet:
        read = snapshots.model(self.connection, self.beside[upstream.name].fingerprint)
        if read is None:
            return _ALL
        return cells_reading(own.cadence, upstream, read.cadence, self._cells(upstream.name))

    def _cells(self, name: str) -> IntervalSet:
        if name not in self._changed:
            self._changed[name] = IntervalSet.of_pairs(
                bounds
                for layer, cells in layers.parts(self.connection, self.beside[name], _ALL)
                for bounds, stamps in ready.stamps(
                    self.connection, layer.version, layer.delta_version, cells
                )
                if self.seen < stamps.latest(None) < self.number
            )
        return self._changed[name]


def _taken_over(
    connection: sa.Connection, new: Pointer, old: Pointer | None, number: int
) -> PublishedMove:
    """Publish what a table holds already: its records stay, with other stamps."""
    own = ready.ready_records(connection, new.version, new.delta_version)
    cells = IntervalSet.of(each.cell for each in own)
    before = _comparable(connection, old, new, _ALL if new.under else cells)
    ready.restamp(connection, _stamped(own, before, number))
    read = pointers.as_read(connection, new)
    lost = IntervalSet.empty() if old is None else _held(connection, old) - _held(connection, read)
    beneath = layers.records(connection, read, _ALL - cells) if read.under else {}
    return _result(own, before, lost, _others(beneath, before))


def _comparable(
    connection: sa.Connection, old: Pointer | None, new: Pointer, cells: IntervalSet
) -> Mapping[Interval, ReadyRecord]:
    """Read what people read of some cells, to be compared with what another table holds."""
    if old is None:
        return {}
    records = layers.records(connection, old, cells)
    before, after = (snapshots.model(connection, at.fingerprint) for at in (old, new))
    contents = as_another_type(
        {cell: each.content for cell, each in records.items()}, before, after
    )
    return {cell: replace(each, content=contents[cell]) for cell, each in records.items()}


def _copied(connection: sa.Connection, move: Move, old: Pointer, number: int) -> PublishedMove:
    """Publish what the commit at the pointer's pin copied in, or took away."""
    new = move.pointer
    own = [
        replace(each, version=new.version)
        for copy in move.copies
        for each in ready.ready_records(connection, copy.source.version, copy.source.delta_version)
        if copy.cells is None or each.cell in copy.cells
    ]
    cells = IntervalSet.of(each.cell for each in own)
    before = layers.records(connection, old, cells | move.emptied)
    current = ready.current_cells(connection, new.version, cells | move.emptied)
    ready.close_records(connection, new.version, current, new.delta_version)
    ready.open_records(connection, _stamped(own, before, number), new.delta_version)
    beneath = layers.records(connection, new, move.emptied)
    return _result(own, before, move.emptied - IntervalSet.of(beneath), _others(beneath, before))


def _stamped(
    own: list[ReadyRecord], old_records: Mapping[Interval, ReadyRecord], number: int
) -> Iterator[ReadyRecord]:
    for each in own:
        old = old_records.get(each.cell)
        before = None if old is None else (old.content, old.changed_at)
        stamps = changed_at(before, each.content, number)
        # Rows moved here, but the cell was not computed again: it is as fresh as it was.
        moved = old is not None and old.batch_id == each.batch_id
        built_at = each.built_at if moved else number
        yield replace(each, built_at=built_at, changed_at=stamps)


def _others(
    after: Mapping[Interval, ReadyRecord], before: Mapping[Interval, ReadyRecord]
) -> list[ReadyRecord]:
    """Give what is read of cells that another batch has built than the one whose rows were read before."""
    return [
        each
        for cell, each in after.items()
        if cell not in before or before[cell].batch_id != each.batch_id
    ]


def _result(
    own: list[ReadyRecord],
    before: Mapping[Interval, ReadyRecord],
    lost: IntervalSet,
    beneath: list[ReadyRecord],
) -> PublishedMove:
    """Compare with what was read before: what is published, what is lost, and what comes to light in tables under it."""
    read = [*own, *beneath]
    differing = (
        each.cell
        for each in read
        if each.cell not in before or before[each.cell].content != each.content
    )
    built = {
        at: IntervalSet.of(each.cell for each in some)
        for at, some in groupby(sorted(own, key=_built_at), key=_built_at)
    }
    cells = IntervalSet.of(each.cell for each in read)
    return PublishedMove(cells | lost, IntervalSet.of(differing) | lost, built)


def _built_at(record: ReadyRecord) -> int:
    return record.built_at


def _held(connection: sa.Connection, at: Pointer) -> IntervalSet:
    return IntervalSet.union_all(
        ready.ready_cells(connection, layer.version, layer.delta_version) for layer in at.layers
    )
