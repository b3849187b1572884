"""Find the ready cells that were built before an upstream of theirs changed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import ChangedAt
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.planning.rule.reopening import reopened
from backfill_assets.snapshots.state_view import ReadyRun, SourceState, UpstreamChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.state_view import ModelState, StateView


def overtaken(
    reader: Reader, upstream: Upstream, newer: Iterable[ReadyRun], columns: frozenset[str] | None
) -> Iterator[tuple[ReadyRun, IntervalSet]]:
    """Pair each newer upstream run with the own cells that read it and were built before it."""
    model, upstream_cadence = reader.model, reader.graph.node(upstream.name).cadence
    for run in newer:
        changed = IntervalSet.of([run.interval])
        readers = reopened(model, upstream, upstream_cadence, changed, reader.ready)
        cells = reader.built_before(run, readers, columns)
        if cells:
            yield run, cells


@dataclass(frozen=True, slots=True)
class Reader:
    """A model's own runs in order of time, so that those of a few cells are found quickly.

    Attributes:
        graph: every model and source.
        model: the one that reads.
        runs: its ready runs, by start.
        starts: where they start, in epoch seconds.
        ready: its ready cells.
        opened: the counter when its workspace was opened; None outside of one.
    """

    graph: Graph
    model: Model
    runs: tuple[ReadyRun, ...]
    starts: tuple[int, ...]
    ready: IntervalSet
    opened: int | None

    @classmethod
    def of(cls, graph: Graph, model: Model, state: ModelState, opened: int | None) -> Reader:
        """Sort the runs of a model."""
        runs = tuple(sorted(state.runs, key=lambda run: run.interval.start))
        starts = tuple(epoch_of(run.interval.start) for run in runs)
        return cls(graph, model, runs, starts, state.ready, opened)

    def built_at(self, run: ReadyRun, *, own: bool) -> int:
        """When a run's inputs were pinned, for the comparison with a change of an upstream.

        A cell that the environment built after the workspace was opened has not read the workspace's own
        cells, whatever the counter is.
        """
        if own and not run.own and self.opened is not None:
            return min(run.built_at, self.opened)
        return run.built_at

    def built_before(
        self, newer: ReadyRun, cells: IntervalSet, columns: frozenset[str] | None
    ) -> IntervalSet:
        """Those of the cells that are of an older build, and not of the same batch."""
        return IntervalSet.union_all(
            IntervalSet.of([run.interval]).within(start, end)
            for start, end in cells.pairs()
            for run in self._touching(start, end)
            if self._is_older(run, newer, columns) and run.batch_id != newer.batch_id
        )

    def _is_older(self, run: ReadyRun, newer: ReadyRun, columns: frozenset[str] | None) -> bool:
        """Whether a run was built before the cells that it reads of another run changed.

        The environment may build a cell while a workspace is open, from cells that the workspace
        has built as well: where these equal the published cells, it has read them.
        """
        if not run.own and newer.unread is not None:
            return run.built_at < newer.unread.latest(columns)
        return self.built_at(run, own=newer.own) < newer.changed_at.latest(columns)

    def _touching(self, start: int, end: int) -> Iterator[ReadyRun]:
        first = max(bisect_right(self.starts, start) - 1, 0)
        return islice(self.runs, first, bisect_left(self.starts, end))


@dataclass
class Overtaken:
    """Finds the cells of one model that an upstream has overtaken; the model's runs are sorted once."""

    graph: Graph
    view: StateView
    model: Model
    state: ModelState

    def by(
        self, upstream: Upstream, theirs: ModelState, columns: frozenset[str] | None
    ) -> list[tuple[ReadyRun, IntervalSet]]:
        """Pair each newer run of an upstream with the cells that it has overtaken."""
        newer = [run for run in theirs.runs if run.last_change(columns) > self._oldest]
        return list(overtaken(self._reader, upstream, newer, columns)) if newer else []

    def changes(
        self,
        upstream: Upstream,
        theirs: ModelState,
        columns: frozenset[str] | None,
        within: IntervalSet,
    ) -> dict[int, IntervalSet]:
        """Give the cells that each change of an upstream has overtaken, of those within some cells."""
        by_number: dict[int, IntervalSet] = {}
        for change in theirs.changes(columns):
            cells = change.cells & within
            if change.number <= self._oldest or not cells:
                continue
            stamp = ChangedAt(change.number, {})
            runs = [ReadyRun(interval, change.number, stamp, "") for interval in cells]
            pairs = overtaken(self._reader, upstream, runs, None)
            by_number[change.number] = IntervalSet.union_all(part for _, part in pairs)
        return by_number

    @cached_property
    def _oldest(self) -> int:
        opened = self.view.environment.opened
        oldest = min(run.built_at for run in self.state.runs)
        return oldest if opened is None else min(oldest, opened)

    @cached_property
    def _reader(self) -> Reader:
        return Reader.of(self.graph, self.model, self.state, self.view.environment.opened)


def by_sources(state: ModelState) -> ModelState:
    """Take the cells as built when their sources were pinned, not when they were published."""
    runs = tuple(
        run if run.sources_at == run.built_at else replace(run, built_at=run.sources_at)
        for run in state.runs
    )
    return replace(state, runs=runs)


@dataclass(frozen=True, slots=True)
class ReadWhole:
    """A source as a model of one cell reads it: only its cells that are over.

    For such a reader a cell also changes when it is over, where its rows came before the reader was built.

    Attributes:
        source: its state, without cells that are not over.
        ended: the cells that are over since the reader was built, and have not changed since.
    """

    source: SourceState
    ended: IntervalSet

    @classmethod
    def of(cls, source: SourceState, cadence: Cadence, own: ReadyRun, now: datetime) -> ReadWhole:
        """Read a source at an instant.

        Args:
            source: its state.
            cadence: how the source is cut.
            own: the reader's cell, as it was built.
            now: the instant that history ends at (UTC).
        """
        over = epoch_of(cadence.floor(now))
        read = over if own.began_at is None else epoch_of(cadence.floor(own.began_at))
        ended, runs, number = IntervalSet.empty(), list[ReadyRun](), own.sources_at + 1
        for run in source.runs:
            cells = _before(IntervalSet.of([run.interval]), over)
            old = cells if run.last_change(None) >= number else _before(cells, read)
            runs += [replace(run, interval=each) for each in old]
            at = ChangedAt(number, {})
            runs += [replace(run, interval=each, changed_at=at) for each in cells - old]
            ended |= cells - old
        known = (*source.changes(None), UpstreamChange(number, ended))
        changes = tuple(UpstreamChange(each.number, _before(each.cells, over)) for each in known)
        return cls(replace(source, runs=tuple(runs), known_changes=changes), ended)


def _reads_what_is_over(model: Model, theirs: Cadence) -> bool:
    return model.cadence.unit is Unit.WHOLE and theirs.unit is not Unit.WHOLE


def _before(cells: IntervalSet, end: int) -> IntervalSet:
    return cells.within(cells.boundaries[0], end) if cells else cells


@dataclass(frozen=True, slots=True)
class Stale:
    """Ready cells that were built before an upstream of theirs changed.

    Attributes:
        cells: which.
        upstream: what changed: a model, or a source that got late data.
        upstream_cells: which cells of it.
        late: whether it is a source.
        ended: of a source that is read as a whole: whether its cells were there before, and are over only
            since.
        changes: the same cells by the number of the upstream's change; a cell that several changes
            have overtaken stands under each.
    """

    cells: IntervalSet
    upstream: str
    upstream_cells: IntervalSet
    late: bool = False
    ended: bool = False
    changes: Mapping[int, IntervalSet] = field(default_factory=dict[int, "IntervalSet"])

    def is_shared(self, graph: Graph) -> bool:
        """Whether the change concerns other models too, which must then move together."""
        return len(graph.readers(self.upstream)) > 1

    def joined(self, other: Stale) -> Stale:
        """Give it together with the cells that the same upstream has overtaken by another definition."""
        return replace(
            self,
            cells=self.cells | other.cells,
            upstream_cells=self.upstream_cells | other.upstream_cells,
            ended=self.ended and other.ended,
            changes={
                at: self.changes.get(at, _NONE) | other.changes.get(at, _NONE)
                for at in {**self.changes, **other.changes}
            },
        )

    @property
    def words(self) -> str:
        """Describe the upstream's change in words."""
        if self.ended:
            return f"{self.upstream} had more cells that are over"
        return f"{self.upstream} {'got, lost or changed rows' if self.late else 'changed'}"


def stale_of(
    graph: Graph,
    view: StateView,
    model: Model,
    needed: IntervalSet,
    reads: Mapping[str, frozenset[str]],
    now: datetime,
) -> Iterator[Stale]:
    """Give the cells of a model that its upstreams have overtaken, by upstream.

    A cell that an earlier definition has made, and that its table has kept, has read what that one reads: a change of this
    overtakes it, too.

    Args:
        graph: every model and source.
        view: the environment's state.
        model: whose cells they are.
        needed: the cells that are asked about.
        reads: per upstream, the columns that the model reads; absent means all.
        now: the instant that history ends at (UTC).
    """
    found: dict[str, Stale] = {}
    for definition, cells in view.definitions_of(model, needed):
        columns = reads if definition is model else _columns_read(graph, definition)
        for stale in _stale_by(graph, view, definition, cells, columns, now):
            known = found.get(stale.upstream)
            found[stale.upstream] = stale if known is None else known.joined(stale)
    yield from found.values()


def _stale_by(
    graph: Graph,
    view: StateView,
    model: Model,
    needed: IntervalSet,
    reads: Mapping[str, frozenset[str]],
    now: datetime,
) -> Iterator[Stale]:
    """Give those that what one definition reads has overtaken, by upstream."""
    state = view.models.get(model.name)
    if state is None or not state.runs or not needed:
        return
    finds: dict[bool, Overtaken] = {False: Overtaken(graph, view, model, state)}
    for upstream in model.reads:
        late, ended = upstream.name in graph.sources, IntervalSet.empty()
        upstream_state = (view.sources if late else view.models).get(upstream.name)
        if upstream_state is None or not (late or upstream.name in graph.models):
            continue
        if late not in finds:
            finds[late] = Overtaken(graph, view, model, by_sources(state))
        theirs = graph.node(upstream.name).cadence
        if isinstance(upstream_state, SourceState) and _reads_what_is_over(model, theirs):
            seen = ReadWhole.of(upstream_state, theirs, state.runs[0], now)
            upstream_state, ended = seen.source, seen.ended
        stale_cells = finds[late].by(upstream, upstream_state, reads.get(upstream.name))
        cells = IntervalSet.union_all(cells for _, cells in stale_cells) & needed
        if cells:
            changed = IntervalSet.of(run.interval for run, cells in stale_cells if cells & needed)
            changes = finds[late].changes(
                upstream, upstream_state, reads.get(upstream.name), changed
            )
            by_change = {at: part & cells for at, part in changes.items() if part & cells}
            yield Stale(cells, upstream.name, changed, late, not changed - ended, by_change)


def _columns_read(graph: Graph, earlier: Model) -> Mapping[str, frozenset[str]]:
    """Trace what an earlier definition reads; every column where one of its upstreams is there no more."""
    there = graph.models.keys() | graph.sources.keys()
    return lineage_of(graph, earlier).reads if {up.name for up in earlier.reads} <= there else {}


def changed_with_others(model: Model, stale: Iterable[Stale]) -> IntervalSet:
    """Give the cells whose change concerns other cells, too: no run, range or batch may publish a part of a change."""
    changes = (cells for part in stale for cells in part.changes.values())
    return IntervalSet.union_all(cells for cells in changes if model.cadence.count(cells) > 1)


_NONE = IntervalSet.empty()
