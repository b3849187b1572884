"""The one rule for what needs work.

A cell needs work when it is required and not ready (a gap), or when something that it reads has
really changed since the inputs of its batch were resolved (stale). Gap filling, resuming,
propagation and early cutoff are all this rule; there is no other one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval, epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.required import missing, required
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.models.model import Model
from backfill_assets.models.upstream import Reopens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView


@dataclass(frozen=True, slots=True)
class Stale:
    """Ready cells that were built before something that they read changed."""

    cells: IntervalSet
    upstream: str
    upstream_cells: IntervalSet


@dataclass(frozen=True, slots=True)
class Work:
    """What one model needs.

    Attributes:
        required: the cells that must hold audited data.
        ready: those that do, stale ones included.
        gaps: those that do not.
        stale: ready cells that an upstream's change has overtaken, by upstream.
        blocked: per upstream model, the cells that wait because cells they read are not ready.
        refresh: cells that are rebuilt without a (further) plan: in a plan's workspace every stale
            or owed one; else stale ones those inside the late window of a model that nobody reads. Where others
            read it, several models would have to move at once, which takes a plan.
        owed: ready cells that were declared wrong and are not rebuilt yet.
    """

    required: IntervalSet
    ready: IntervalSet
    gaps: IntervalSet
    stale: tuple[Stale, ...] = ()
    blocked: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    refresh: IntervalSet = field(default_factory=IntervalSet.empty)
    owed: IntervalSet = field(default_factory=IntervalSet.empty)

    @property
    def stale_cells(self) -> IntervalSet:
        """Every stale cell."""
        return IntervalSet.union_all(one.cells for one in self.stale)

    @property
    def runnable(self) -> IntervalSet:
        """The gaps whose inputs are all ready."""
        return self.gaps - IntervalSet.union_all(self.blocked.values())

    @property
    def todo(self) -> IntervalSet:
        """What is done without a plan: every gap, those that still wait included, and refreshes."""
        return self.gaps | self.refresh


def needs_work(
    graph: Graph,
    view: StateView,
    model: Model,
    *,
    now: datetime,
    window: Interval | None = None,
    reads: Mapping[str, frozenset[str]] | None = None,
) -> Work:
    """Apply the rule to one model.

    Args:
        graph: every model and source.
        view: what is ready, at the environment's pins.
        model: the one asked about.
        now: the instant that history ends at (UTC).
        window: only cells inside; None means the model's whole life.
        reads: per upstream, the columns that the model reads (lineage); absent means all.
    """
    needed = required(
        model.cadence,
        start=window.start if window else None,
        end=window.end if window else None,
        now=now,
    )
    ready = view.ready(model.name) & needed
    gaps = missing(model.cadence, needed, ready)
    stale = tuple(_stale(graph, view, model, needed, reads or {}))
    overtaken = IntervalSet.union_all(one.cells for one in stale)
    owed = view.owed.get(model.name, IntervalSet.empty()) & ready
    refresh = IntervalSet.empty()
    if view.environment.is_workspace:
        refresh = overtaken | owed
    elif not graph.readers(model.name):
        refresh = overtaken & last_cells(model, ready, model.late_window)
    blocked = _blocked(graph, view, model, gaps | refresh, now)
    return Work(
        required=needed,
        ready=ready,
        gaps=gaps,
        stale=stale,
        blocked=blocked,
        refresh=refresh - IntervalSet.union_all(blocked.values()),
        owed=owed,
    )


def _blocked(
    graph: Graph, view: StateView, model: Model, gaps: IntervalSet, now: datetime
) -> dict[str, IntervalSet]:
    """Find the gaps that read upstream cells which are not ready, per upstream."""
    blocked: dict[str, IntervalSet] = {}
    for upstream in model.reads:
        theirs = graph.node(upstream.name)
        if not isinstance(theirs, Model) or upstream.name == model.name:
            continue
        read = cells_read(model.cadence, upstream, theirs.cadence, gaps, until=now)
        lacking = read - view.ready(upstream.name)
        waiting = cells_reading(model.cadence, upstream, theirs.cadence, lacking) & gaps
        if waiting:
            blocked[upstream.name] = waiting
    return blocked


def _stale(
    graph: Graph,
    view: StateView,
    model: Model,
    needed: IntervalSet,
    reads: Mapping[str, frozenset[str]],
) -> Iterator[Stale]:
    state = view.models.get(model.name)
    if state is None or not state.runs:
        return
    opened = view.environment.opened
    oldest = min(run.built_at for run in state.runs)
    oldest = oldest if opened is None else min(oldest, opened)
    reader: _Reader | None = None
    for upstream in model.reads:
        theirs = view.models.get(upstream.name)
        if theirs is None:
            continue
        columns = reads.get(upstream.name)
        newer = [run for run in theirs.runs if run.changed_at.latest(columns) > oldest]
        if not newer:
            continue
        reader = reader or _Reader.of(graph, model, state, opened)
        found = list(_overtaken(reader, upstream, newer, columns))
        cells = IntervalSet.union_all(cells for _, cells in found) & needed
        if cells:
            changed = IntervalSet.of(run.interval for run, cells in found if cells & needed)
            yield Stale(cells, upstream.name, changed)


def _overtaken(
    reader: _Reader, upstream: Upstream, newer: Iterable[ReadyRun], columns: frozenset[str] | None
) -> Iterator[tuple[ReadyRun, IntervalSet]]:
    """Pair each newer upstream run with the own cells that read it and were built before it."""
    model, theirs = reader.model, reader.graph.node(upstream.name).cadence
    whole = theirs.unit is Unit.WHOLE
    for run in newer:
        readers = cells_reading(model.cadence, upstream, theirs, IntervalSet.of([run.interval]))
        if whole:
            readers &= _reopened(model, upstream, reader.ready)
        cells = reader.built_before(run, readers, columns)
        if cells:
            yield run, cells


@dataclass(frozen=True, slots=True)
class _Reader:
    """A model's own runs in order of time, so that those of a few cells are found quickly."""

    graph: Graph
    model: Model
    runs: tuple[ReadyRun, ...]
    starts: tuple[int, ...]
    ready: IntervalSet
    opened: int | None

    @classmethod
    def of(cls, graph: Graph, model: Model, state: ModelState, opened: int | None) -> _Reader:
        runs = tuple(sorted(state.runs, key=lambda run: run.interval.start))
        starts = tuple(epoch_of(run.interval.start) for run in runs)
        return cls(graph, model, runs, starts, state.ready, opened)

    def built_at(self, run: ReadyRun, *, own: bool) -> int:
        """When a run's inputs were pinned, as far as a change of an upstream can tell.

        What the environment built after the workspace was opened has not read the workspace's own
        cells, whatever the counter says.
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
        """Whether a run was built before what it reads of another one changed.

        The environment may build a cell while a workspace is open, from cells that the workspace
        has built as well: where these hold what is published, it has read them.
        """
        if not run.own and newer.unread is not None:
            return run.built_at < newer.unread.latest(columns)
        return self.built_at(run, own=newer.own) < newer.changed_at.latest(columns)

    def _touching(self, start: int, end: int) -> Iterator[ReadyRun]:
        first = max(bisect_right(self.starts, start) - 1, 0)
        return islice(self.runs, first, bisect_left(self.starts, end))


def _reopened(model: Model, upstream: Upstream, ready: IntervalSet) -> IntervalSet:
    """The cells that the change of a `Full` upstream reopens, as its reader declares."""
    match upstream.reopens:
        case Reopens.ALL:
            return ready
        case Reopens.LATE_WINDOW:
            return last_cells(model, ready, model.late_window)
        case Reopens.NEVER:
            return IntervalSet.empty()


def last_cells(model: Model, ready: IntervalSet, count: int) -> IntervalSet:
    """Give the last `count` cells of what is ready: the model's late window."""
    hull = ready.hull()
    if hull is None or count == 0:
        return IntervalSet.empty()
    first = model.cadence.shift(hull.end, -count)
    return ready & IntervalSet.of([Interval(first, hull.end)])
