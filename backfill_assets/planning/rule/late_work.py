"""Late work: which stale cells are built again automatically, and which need a plan of a person.

A stale cell is built again automatically if it, and every ready cell that its change may reach, lies in
the late window of its model. If one lies outside of its window, the change would rewrite published
history further back than its model declares: then the cell is left stale, and counted. So is one that a
policy lets only people change.

A change is published at once or not at all: if one of the cells that it has overtaken is left, in any
model, all of them are. Changes that have overtaken the same cell are connected, because building that
cell brings in all of them.

Of a source that lets cells wait for rows, a published cell waits, too: where all rows that it was built
from are gone, it stays as it is until the source has rows for it again, or a person declares it wrong.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.restated import onward
from backfill_assets.intervals.text import first_of
from backfill_assets.models.cells import cells_read
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.planning.rule.reopening import last_cells, reads_whole, reopened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView


ASKED_BY = "late data"
"""Who asks for an automatic plan."""
_NOTHING = IntervalSet.empty()
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class LateWork:
    """Stale cells of an environment, by model.

    Attributes:
        automatic: they are built again by an automatic plan.
        in_place: they are built again in the model's own table by its next run: no other model moves.
        waiting: they need a plan: something that they reach lies outside of its model's late window, or is
            reserved to people.
        held: they wait for an open plan or a live batch at cells that they, or other cells of the
            same change, reach.
        awaits: by source, those that wait for its rows, or reach a cell that does, with all other cells
            of the same change.
        because: what changed, in words, by model.
        beyond: gives the models of which a waiting change reaches cells outside of their late windows, by the
            name of the model whose cells wait; asked where a person is told of them.
    """

    automatic: CellsByModel = field(default_factory=CellsByModel)
    in_place: CellsByModel = field(default_factory=CellsByModel)
    waiting: CellsByModel = field(default_factory=CellsByModel)
    held: CellsByModel = field(default_factory=CellsByModel)
    awaits: Mapping[str, CellsByModel] = field(default_factory=dict[str, CellsByModel])
    because: Mapping[str, str] = field(default_factory=dict[str, str])
    beyond: Callable[[str], tuple[str, ...]] = field(default=lambda _: (), compare=False)

    def awaiting(self, model: str) -> dict[str, IntervalSet]:
        """Give a model's cells that wait for rows, by the source."""
        return {source: cells[model] for source, cells in self.awaits.items() if cells[model]}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBack:
    """Cells that keep changes which reach them from being brought in automatically, by model.

    Attributes:
        by_others: another plan or batch builds them: a change that reaches one waits.
        in_place: those of them that a refresh in the model's own table waits for: a plan of a new table
            carries over what the environment publishes meanwhile.
        failed: they can't be built: a cell that reaches them waits; the other cells of its change do
            not, since a failure blocks only its readers.
        reserved: gives those that only a plan of people may build again, with all that reaches them;
            asked where something is stale.
    """

    by_others: CellsByModel = field(default_factory=CellsByModel)
    in_place: CellsByModel = field(default_factory=CellsByModel)
    failed: CellsByModel = field(default_factory=CellsByModel)
    reserved: Callable[[], CellsByModel] = CellsByModel


def late_work(
    graph: Graph,
    view: StateView,
    kept_back: KeptBack,
    *,
    now: datetime,
    reads: Mapping[str, Mapping[str, frozenset[str]]],
) -> LateWork:
    """Split the stale cells of an environment.

    Args:
        graph: the models that the environment runs, and the sources.
        view: its state.
        kept_back: what keeps changes from being brought in automatically.
        now: the instant that history ends at (UTC).
        reads: per model, what it reads by column (lineage).
    """
    works = {
        name: needs_work(graph, view, graph.models[name], now=now, reads=reads.get(name))
        for name in graph.order
        if name in view.models
    }
    stale = CellsByModel({name: work.stale_cells for name, work in works.items()})
    if not stale:
        return LateWork()
    changes = _changes(works)
    closed = kept_back.by_others | kept_back.failed
    free = _Windows(graph, view, now, (view.owed - closed) | kept_back.reserved()).open()
    far = together(changes, stale - free)
    alone = CellsByModel({name: works[name].refresh for name in stale}) - far
    due = stale - (_left(graph, view, changes, far) - alone)
    open_ = _Windows(graph, view, now, kept_back.by_others | view.owed).open()
    waits = together(changes, due - open_)
    allowed = _Windows(graph, view, now, closed | view.owed).open()
    awaits = _awaits(graph, view, now, works, due, changes)
    rowless = CellsByModel.of(each for cells in awaits.values() for each in cells.items())
    in_place = (due & alone) - rowless
    if in_place:
        closed_in_place = kept_back.in_place | kept_back.failed | view.owed
        in_place &= _Windows(graph, view, now, closed_in_place).open()
    ours = ((due & allowed) - waits - rowless) | in_place
    waiting = stale - due - rowless
    return LateWork(
        automatic=ours - in_place,
        in_place=in_place,
        waiting=waiting,
        held=due - ours - rowless,
        awaits=awaits,
        because={name: _because(works[name]) for name in stale},
        beyond=lambda name: _beyond(
            graph, view, together(changes, CellsByModel({name: waiting[name]}))
        ),
    )


def _awaits(
    graph: Graph,
    view: StateView,
    now: datetime,
    works: Mapping[str, Work],
    due: CellsByModel,
    changes: list[CellsByModel],
) -> dict[str, CellsByModel]:
    """Give the stale cells that wait for rows, by the source; each is named once."""
    lacking: defaultdict[str, CellsByModel] = defaultdict(CellsByModel)
    for name, work in works.items():
        for source, cells in work.awaits.items():
            lacking[source] |= {name: cells}
    awaits: dict[str, CellsByModel] = {}
    for source, cells in lacking.items():
        reaching = due - _Windows(graph, view, now, cells).open()
        named = CellsByModel.of(each for other in awaits.values() for each in other.items())
        awaits[source] = together(changes, cells | reaching) - named
    return awaits


def _changes(works: Mapping[str, Work]) -> list[CellsByModel]:
    """Give the cells that each change of an upstream has overtaken, by model."""
    changes: defaultdict[tuple[str, int], CellsByModel] = defaultdict(CellsByModel)
    for name, work in works.items():
        for stale in work.stale:
            for number, cells in stale.changes.items():
                changes[stale.upstream, number] |= {name: cells}
    return list(changes.values())


def _left(
    graph: Graph,
    view: StateView,
    changes: list[CellsByModel],
    cells: CellsByModel,
) -> CellsByModel:
    """Give these cells, all that belong together with them, and every ready one that reads them."""
    while (more := _reached(graph, view, together(changes, cells))) != cells:
        cells = more
    return cells


@dataclass(slots=True)
class _Windows:
    """Finds the cells that may be built again, with all that this may reach: readers first."""

    graph: Graph
    view: StateView
    now: datetime
    closed: CellsByModel
    opened: CellsByModel = field(default_factory=CellsByModel)

    def open(self) -> CellsByModel:
        """Give the cells that may be built again, by model."""
        for name in reversed(self.graph.order):
            self.opened |= {name: self._open(self.graph.models[name])}
        return self.opened

    def _open(self, model: Model) -> IntervalSet:
        state = self.view.models.get(model.name)
        if state is None or state.pointer.environment != self.view.environment.name:
            return _NOTHING
        cells = last_cells(model, state.ready, model.late_window)
        cells -= self.closed[model.name]
        for reader in self.graph.readers(model.name):
            cells -= self._closed_by(model, self.graph.models[reader])
        if model.in_order:  # a change here reaches every cell up to the last
            closed = state.ready - cells
            last = closed.boundaries[-1] if closed else 0
            cells = cells.within(last, cells.boundaries[-1]) if cells else cells
        return cells

    def _closed_by(self, model: Model, reader: Model) -> IntervalSet:
        """Give the cells whose change would reach a cell of the reader that must stay."""
        ready = self.view.ready(reader.name)
        closed = ready - self.opened[reader.name]
        cells = _NOTHING
        for upstream in reader.reads:
            if upstream.name != model.name:
                continue
            if reads_whole(reader, model.cadence):
                whole = IntervalSet.of([WHOLE_CELL])
                reached = reopened(reader, upstream, model.cadence, whole, ready)
                cells |= self.view.ready(model.name) if reached & closed else _NOTHING
            elif closed:
                cells |= cells_read(reader.cadence, upstream, model.cadence, closed, until=self.now)
        return cells


def _reached(graph: Graph, view: StateView, cells: CellsByModel) -> CellsByModel:
    """Give these cells, and every ready one that reads them, directly or through others."""
    reached = CellsByModel()
    for name in graph.order:
        model, ready = graph.models[name], view.ready(name)
        own = cells[name]
        for upstream in model.reads:
            changed = reached[upstream.name]
            if not changed or upstream.name == name:
                continue
            upstream_cadence = graph.models[upstream.name].cadence
            own |= reopened(model, upstream, upstream_cadence, changed, ready) & ready
        if own and model.in_order:
            own = onward(own, ready) & ready
        reached |= {name: own}
    return reached


def _beyond(graph: Graph, view: StateView, cells: CellsByModel) -> tuple[str, ...]:
    """Name the models of which these cells, or ready ones that read them, lie outside of the late window."""
    if not cells:
        return ()
    reached = _reached(graph, view, cells)
    return tuple(
        name
        for name, model in graph.models.items()
        if reached[name] - last_cells(model, view.ready(name), model.late_window)
    )


def _because(work: Work) -> str:
    return "; ".join(dict.fromkeys(part.words for part in work.stale))


def beyond_words(models: Iterable[str]) -> str:
    """Say of which models late cells lie outside of the late window, to follow "a plan"; empty for none."""
    names = first_of(models, _SHOWN)
    return f" (beyond the late window of {names})" if names else ""


def together(changes: Iterable[CellsByModel], cells: CellsByModel) -> CellsByModel:
    """Give some cells, and every cell that a change connects with one of them.

    Args:
        changes: per change, the cells that it has overtaken, by model. A cell may belong to several
            changes, which are then connected.
        cells: by model.
    """
    joined, remaining = cells, list(changes)
    while True:
        apart: list[CellsByModel] = []
        for change in remaining:
            if change & joined:
                joined |= change
            else:
                apart.append(change)
        if len(apart) == len(remaining):
            return joined
        remaining = apart[::-1]  # a chain of changes is followed one way, then the other
