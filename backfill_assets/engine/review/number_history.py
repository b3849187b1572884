"""What an environment published of some cells, step by step, from recorded moves, batches and cells."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.number_changes import HeldContent, HistoryStep
from backfill_assets.snapshots.environment import Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.ready import InputPin, ReadyRecord
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.store import StateReader

NOT_RECORDED = "not recorded"
"""What a step is called that only shows in what is published now."""


@dataclass
class RecordedCells:
    """What tables held in some cells, from their ready records; each table is asked for once."""

    store: StateReader
    model: str
    cells: tuple[Interval, ...]
    records: dict[str, dict[Interval, list[ReadyRecord]]] = field(
        default_factory=dict[str, "dict[Interval, list[ReadyRecord]]"]
    )
    others: dict[Layer, IntervalSet] = field(default_factory=dict["Layer", IntervalSet])

    @cached_property
    def batches(self) -> list[BatchRow]:
        """The model's committed batches, the latest first."""
        return committed(self.store, self.model)

    def held(self, pointer: Pointer) -> dict[Interval, HeldContent]:
        """Give what each cell held at a pointer, layers included; cells that were not ready are left out."""
        pairs = ((cell, self._cell(pointer, cell)) for cell in self.cells)
        return {cell: held for cell, held in pairs if held is not None}

    def at_pin(self, layer: Layer, cell: Interval) -> HeldContent | None:
        """Give what a cell held in one table at a delta_version; None where it was not ready.

        Of a table whose cells were cut otherwise it is only known that something was there.
        """
        by_cell = self._of(layer.version)
        if not by_cell:
            return self._collected(layer, cell)
        record = _valid(by_cell.get(cell, []), layer.delta_version)
        if record is not None:
            return HeldContent(
                record.version,
                record.valid_from,
                record.batch_id,
                record.fingerprint,
                record.content,
            )
        if self._cut_otherwise(layer).within(*IntervalSet.of([cell]).boundaries):
            return HeldContent(layer.version, None, "", "", None)
        return None

    def at_pins(self, pins: Iterable[InputPin], cell: Interval) -> HeldContent | None:
        """Give what a cell held in the first of the tables that were read in which it was ready."""
        for pin in pins:
            if pin.cells is None or cell in pin.cells:
                held = self.at_pin(Layer(pin.version, pin.delta_version), cell)
                if held is not None:
                    return held
        return None

    def last_read(self, held: HeldContent, cell: Interval) -> int | None:
        """Give the last delta_version at which a table still holds what it held; None: it is the newest.

        A later commit may have put the same rows into other files, and deleted the first ones.
        """
        for record in self._of(held.version).get(cell, []):
            if record.valid_from == held.since:
                return None if record.valid_to is None else record.valid_to - 1
        return held.since

    def _cell(self, pointer: Pointer, cell: Interval) -> HeldContent | None:
        for number, layer in enumerate(pointer.layers):
            if number > 0 and cell in pointer.certain:
                return None
            held = self.at_pin(layer, cell)
            if held is not None:
                return held
        return None

    def _cut_otherwise(self, layer: Layer) -> IntervalSet:
        """Give what a table held in cells that are none of these, such as days of a model of months."""
        if layer not in self.others:
            by_cell, own = self._of(layer.version), {*self.cells}
            self.others[layer] = IntervalSet.of(
                cell
                for cell, records in by_cell.items()
                if cell not in own and _valid(records, layer.delta_version) is not None
            )
        return self.others[layer]

    def _of(self, version: str) -> dict[Interval, list[ReadyRecord]]:
        if version not in self.records:
            by_cell: dict[Interval, list[ReadyRecord]] = {}
            for record in self.store.versions.records_ever(version, IntervalSet.of(self.cells)):
                by_cell.setdefault(record.cell, []).append(record)
            self.records[version] = by_cell
        return self.records[version]

    def _collected(self, layer: Layer, cell: Interval) -> HeldContent | None:
        """Give what batches say of a table whose records are gone with it."""
        if self.store.versions.is_known(layer.version):
            return None
        built = [
            row
            for row in self.batches
            if row.version == layer.version
            and cell in row.stretches
            and _delta_version(row) <= layer.delta_version
        ]
        if not built:
            return HeldContent(layer.version, None, "", "", None)
        last = max(built, key=_delta_version)
        return HeldContent(layer.version, None, last.batch_id, last.fingerprint, None)


def _valid(records: Sequence[ReadyRecord], delta_version: int) -> ReadyRecord | None:
    """Choose the record of a cell that was valid at a delta_version, if one was."""
    at = bisect_right(records, delta_version, key=attrgetter("valid_from")) - 1
    if at < 0:
        return None
    record = records[at]
    is_over = record.valid_to is not None and record.valid_to <= delta_version
    return None if is_over else record


def committed(store: StateReader, model: str) -> list[BatchRow]:
    """Read a model's batches that were committed, the latest first."""
    return [
        row
        for row in store.batches.latest(model=model)
        if row.is_committed and row.delta_version is not None
    ]


def steps_of(
    store: StateReader, environment: str, recorded: RecordedCells
) -> tuple[HistoryStep, ...]:
    """Give every step that changed what an environment read in some cells, the oldest first.

    Moves of pointers are in the order of their numbers, and the batches between two moves in the order of
    their commits, so no clock decides.

    Args:
        store: the state.
        environment: whose reading.
        recorded: the cells, and what tables held in them.
    """
    steps: list[HistoryStep] = []
    now: dict[Interval, HeldContent] = {}
    for pointer, step in _pointed(store, environment, recorded.model, recorded.batches):
        contents = {} if pointer is None else recorded.held(pointer)
        if contents != now:
            now = contents
            steps.append(replace(step, held=contents))
    return tuple(steps)


def _pointed(
    store: StateReader, environment: str, model: str, rows: list[BatchRow]
) -> list[tuple[Pointer | None, HistoryStep]]:
    """Give every pointer that an environment had to a model, with the step that led to it."""
    current = store.environments.pointers(environment).get(model)
    before: Pointer | None = None
    pointed: list[tuple[Pointer | None, HistoryStep]] = []
    for move in moves_read(store, store.history.moves_in, environment, model, rows):
        pointed += _batches(before, move.old, rows)
        step = HistoryStep(move.at, move.kind.value, {}, move.plan_id, None, move.who, move.why)
        pointed.append((move.new, step))
        before = move.new
    pointed += _batches(before, current, rows)
    if pointed:
        _, last = pointed[-1]
        pointed.append((current, HistoryStep(last.at, NOT_RECORDED, {})))
    return pointed


def moves_read(
    store: StateReader,
    moves_in: Callable[[str], Sequence[PointerMove]],
    environment: str,
    model: str,
    rows: Sequence[BatchRow],
) -> list[PointerMove]:
    """Give the moves of what an environment read of a model, the oldest first.

    While it has no pointer of its own, these are the moves of the environment that it follows. A move that
    leaves it without one leads to what that environment read then. While its own table lies over others, it reads
    what is published in those, too.

    Args:
        store: the state.
        moves_in: gives the moves of an environment.
        environment: whose reading.
        model: which.
        rows: the model's committed batches.
    """
    own = [move for move in moves_in(environment) if move.model == model]
    current = store.environments.pointers(environment).get(model)
    at = own[0].old if own else current
    if at is not None and at.environment != environment:
        at = None
    follows = store.environments.get(environment).follows
    if follows is None:
        return own
    theirs = moves_read(store, moves_in, follows, model, rows)
    read: list[PointerMove] = []
    for move in sorted((*own, *theirs), key=attrgetter("number")):
        if move.environment == environment:
            at = move.new
            new = move.new or _followed(store, follows, theirs, move, rows)
            read.append(replace(move, new=new))
        elif at is None:
            read.append(move)
        else:
            old, new = (at if to is None else at.raised(_pins(to)) for to in (move.old, move.new))
            if new != old:
                hidden = _own_cells(store, at)
                cells, changed = move.cells - hidden, move.changed - hidden
                read.append(replace(move, old=old, new=new, cells=cells, changed=changed))
            is_taken_over = move.new is not None and move.new.is_as(at)  # its own pointer goes then
            at = None if is_taken_over else new
    return read


def _own_cells(store: StateReader, pointer: Pointer) -> IntervalSet:
    """Give the cells that come from a pointer's own table, whatever the tables under it hold."""
    records = store.versions.ready_records(pointer.version, pointer.delta_version)
    return IntervalSet.of(record.cell for record in records)


def _followed(
    store: StateReader,
    follows: str,
    theirs: Sequence[PointerMove],
    at: PointerMove,
    rows: Iterable[BatchRow],
) -> Pointer | None:
    """Give what a followed environment read at a move of another one: the clock says up to which batch."""
    before = [move for move in theirs if move.number < at.number]
    after = theirs[len(before) :]
    later = after[0].old if after else store.environments.pointers(follows).get(at.model)
    then = before[-1].new if before else later
    if then is None or later is None:
        return then
    low, high = _pins(then) if before else {}, _pins(later)
    pins = dict(_pins(then))
    for row in rows:
        pin = _delta_version(row)
        if _ended(row) <= at.at and low.get(row.version, -1) < pin <= high.get(row.version, -1):
            low[row.version] = pin
    return _at(then, pins | low)


def _batches(
    start: Pointer | None, end: Pointer | None, rows: Iterable[BatchRow]
) -> Iterator[tuple[Pointer, HistoryStep]]:
    """Yield the commits between two moves, each with the pointer that it led to."""
    if end is None:
        return
    first = {} if start is None else _pins(start)
    last = _pins(end)
    between = [
        row
        for row in rows
        if row.version in last
        and first.get(row.version, -1) < _delta_version(row) <= last[row.version]
    ]
    seen = {version: first.get(version, -1) for version in last}
    alone = len(last) == 1  # then the commits of one table say the order; else only clocks can

    def order(row: BatchRow) -> tuple[datetime | int, int]:
        return (0 if alone else _ended(row), _delta_version(row))

    for row in sorted(between, key=order):
        seen[row.version] = max(seen[row.version], _delta_version(row))
        step = HistoryStep(
            _ended(row), "batch", {}, row.plan_id, row.batch_id, row.who or row.run_id, row.reason
        )
        yield _at(end, seen), step


def _at(pointer: Pointer, pins: Mapping[str, int]) -> Pointer:
    under = tuple(replace(each, delta_version=pins[each.version]) for each in pointer.under)
    return replace(pointer, delta_version=pins[pointer.version], under=under)


def _pins(pointer: Pointer) -> dict[str, int]:
    return {layer.version: layer.delta_version for layer in reversed(pointer.layers)}


def _ended(row: BatchRow) -> datetime:
    return row.finished_at or row.started_at


def _delta_version(row: BatchRow) -> int:
    return -1 if row.delta_version is None else row.delta_version
