"""Why a cell that was built again differs: its logic, late rows of sources, or cells of upstream models.

The two batches that built it name their snapshots and the pins of what they read. Where a model was read at
two pins, the contents of the cells that were read are compared, and cells that differ are followed upstream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.requests import ADOPTED
from backfill_assets.engine.review.number_history import RecordedCells
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read
from backfill_assets.planning.review.number_changes import Cause, CauseKind, merged
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.snapshots.ready import pins_by_upstream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.review.number_changes import HeldContent, HistoryStep
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.snapshots.state_view import UpstreamChange
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.snapshots import StoredSnapshot
    from backfill_assets.state.store import StateReader

_COPIED = "a plan had published it when the state was lost, and what it had read was lost too"
_BACK = {"rollback": CauseKind.ROLLBACK, "undo": CauseKind.UNDO}


@dataclass
class Causes:
    """Finds causes from what is recorded; batches, snapshots and cells are read once.

    Attributes:
        store: the state.
        graph: the models and sources, for the grids of upstreams.
        changes: of each observed source, the changes that are known.
    """

    store: StateReader
    graph: Graph
    changes: Mapping[str, tuple[UpstreamChange, ...]]
    _rows: dict[str, BatchRow | None] = field(default_factory=dict[str, "BatchRow | None"])
    _snapshots: dict[str, StoredSnapshot | None] = field(
        default_factory=dict[str, "StoredSnapshot | None"]
    )
    _found: dict[tuple[object, ...], tuple[Cause, ...]] = field(
        default_factory=dict[tuple[object, ...], "tuple[Cause, ...]"]
    )

    def of_step(
        self,
        model: str,
        step: HistoryStep,
        cell: Interval,
        old: HeldContent | None,
        new: HeldContent | None,
    ) -> tuple[Cause, ...]:
        """Say why a cell of a model holds something else since a step."""
        if step.what in _BACK:
            return (Cause(_BACK[step.what]),)
        if old is None:
            return self._first(new)
        if new is None:
            return (Cause(CauseKind.REMOVED),)
        return self.differing(model, cell, old, new)

    def _first(self, new: HeldContent | None) -> tuple[Cause, ...]:
        row = None if new is None else self._row(new.batch_id)
        if row is not None and row.reason in (EMPTY, ADOPTED):
            return (Cause(CauseKind.EMPTIED if row.reason == EMPTY else CauseKind.ADOPTED),)
        return (Cause(CauseKind.FIRST),)

    def differing(
        self, model: str, cell: Interval, old: HeldContent, new: HeldContent
    ) -> tuple[Cause, ...]:
        """Say why a cell that was built twice holds two things; empty where it holds the same."""
        if old.content is not None and old.content == new.content:
            return ()
        key = (model, cell, old.version, old.since, old.batch_id, new.version, new.since)
        if key not in self._found:
            self._found[key] = merged(self._differing(model, cell, old, new))
        return self._found[key]

    def _differing(
        self, model: str, cell: Interval, old: HeldContent, new: HeldContent
    ) -> Iterator[Cause]:
        before, after = self._row(old.batch_id), self._row(new.batch_id)
        if not (old.batch_id and new.batch_id):
            yield Cause(
                CauseKind.UNKNOWN,
                model,
                note="a table was deleted, or its cells were cut otherwise",
            )
            return
        if before is None or after is None:
            yield Cause(CauseKind.UNKNOWN, model, note="a batch is known only by the table's log")
            return
        if old.batch_id == new.batch_id:
            yield Cause(CauseKind.MOVED, model)
            return
        if after.reason in (EMPTY, ADOPTED):
            yield Cause(CauseKind.EMPTIED if after.reason == EMPTY else CauseKind.ADOPTED)
            return
        if before.reason in (EMPTY, ADOPTED):  # no query had made what it held
            held = "recorded as empty" if before.reason == EMPTY else "adopted"
            yield Cause(CauseKind.COMPUTED, model, note=f"before it was {held}")
            return
        causes = [*self._logic(model, before, after), *self._inputs(model, cell, before, after)]
        yield from causes or [Cause(CauseKind.SAME, model)]

    def _logic(self, model: str, before: BatchRow, after: BatchRow) -> Iterator[Cause]:
        if before.fingerprint == after.fingerprint:
            return
        old, new = self._snapshot(before.fingerprint), self._snapshot(after.fingerprint)
        if old is None or new is None:
            yield Cause(CauseKind.LOGIC, model, note="the older code was deleted by `backfill gc`")
        elif old.logic != new.logic:
            yield Cause(CauseKind.LOGIC, model)
        elif old.sources != new.sources:
            yield Cause(CauseKind.LOGIC, model, note="the declaration of a source that it reads")

    def _inputs(
        self, model: str, cell: Interval, before: BatchRow, after: BatchRow
    ) -> Iterator[Cause]:
        if PROMOTED in (before.reason, after.reason):
            yield Cause(CauseKind.UNKNOWN, model, note=_COPIED)
            return
        declared = self._model(model, after.fingerprint)
        pins = pins_by_upstream(before.inputs)
        for name, new in pins_by_upstream(after.inputs).items():
            old = pins.get(name, ())
            if declared is None or not old or old == new:
                continue
            cells = self._read(declared, name, cell, before, after)
            if name == model:
                yield from self._earlier(name, cells, old, new)
            elif name in self.graph.sources:
                yield from self._rows_of(name, cells, before, after)
            elif cells:
                yield from self._upstream(name, cells, old, new)

    def _read(
        self, declared: Model, name: str, cell: Interval, before: BatchRow, after: BatchRow
    ) -> IntervalSet:
        upstream = next((read for read in declared.reads if read.name == name), None)
        if upstream is None or not (name in self.graph.models or name in self.graph.sources):
            return IntervalSet.empty()
        upstream_cadence = self.graph.node(name).cadence
        until, own = max(before.started_at, after.started_at), IntervalSet.of([cell])
        read = cells_read(declared.cadence, upstream, upstream_cadence, own, until=until)
        return read - own if name == declared.name else read

    def _rows_of(
        self, source: str, cells: IntervalSet, before: BatchRow, after: BatchRow
    ) -> Iterator[Cause]:
        """Name the cells of a source that changed between two batches' readings of it."""
        if source not in self.changes:
            yield Cause(CauseKind.READ_LATER, source, cells)
            return
        first, last = sorted((before.built_at, after.built_at))
        changed = IntervalSet.union_all(
            change.cells for change in self.changes[source] if first < change.number <= last
        )
        if changed & cells:
            yield Cause(CauseKind.LATE, source, changed & cells)

    def _upstream(
        self, name: str, cells: IntervalSet, old: Sequence[InputPin], new: Sequence[InputPin]
    ) -> Iterator[Cause]:
        cadence = self.graph.models[name].cadence
        each_cell = tuple(cadence.cells(cells))
        recorded = RecordedCells(self.store, name, each_cell)
        for cell in each_cell:
            then, now = recorded.at_pins(old, cell), recorded.at_pins(new, cell)
            own = IntervalSet.of([cell])
            if then is None or now is None:
                filled = CauseKind.UPSTREAM_FILLED if then is None else CauseKind.UPSTREAM_REMOVED
                if then is not now:
                    yield Cause(filled, name, own)
            elif then.content is None or now.content is None:
                yield Cause(
                    CauseKind.UNKNOWN,
                    name,
                    own,
                    "a table that was read was deleted by `backfill gc`, or its cells were cut otherwise",
                )
            else:
                yield from self.differing(name, cell, then, now)

    def _earlier(
        self, name: str, cells: IntervalSet, old: Sequence[InputPin], new: Sequence[InputPin]
    ) -> Iterator[Cause]:
        """Name the model's own earlier cells that differ; these are not followed further."""
        each_cell = tuple(self.graph.models[name].cadence.cells(cells)) if cells else ()
        recorded = RecordedCells(self.store, name, each_cell)
        differ = [
            cell
            for cell in each_cell
            if _content(recorded.at_pins(old, cell)) != _content(recorded.at_pins(new, cell))
        ]
        if differ:
            yield Cause(CauseKind.EARLIER_CELLS, name, IntervalSet.of(differ))

    def _row(self, batch_id: str) -> BatchRow | None:
        if batch_id not in self._rows:
            self._rows[batch_id] = self.store.batches.find(batch_id)
        return self._rows[batch_id]

    def _snapshot(self, fingerprint: str) -> StoredSnapshot | None:
        if fingerprint not in self._snapshots:
            self._snapshots[fingerprint] = self.store.snapshots.find(fingerprint)
        return self._snapshots[fingerprint]

    def _model(self, name: str, fingerprint: str) -> Model | None:
        """Give a model as it was declared for a batch, or as it is now where that is collected."""
        stored = self._snapshot(fingerprint)
        return self.graph.models.get(name) if stored is None else stored.declared


def _content(held: HeldContent | None) -> object:
    return None if held is None else held.content
