"""The one rule for what needs work.

A cell needs work when it is required and not ready (a gap), or when something that it reads has
really changed since the inputs of its batch were resolved (stale), unless a cutoff keeps it. Gap
filling, resuming, propagation and early cutoff are all this rule; there is no other one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.required import missing, required
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.models.model import Model
from backfill_assets.planning.overtaken import Reader, overtaken
from backfill_assets.planning.reopening import last_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView


@dataclass(frozen=True, slots=True)
class Stale:
    """Ready cells that were built before something that they read changed.

    Attributes:
        cells: which.
        upstream: what changed: a model, or a source that got late data.
        upstream_cells: which cells of it.
        late: whether it is a source.
    """

    cells: IntervalSet
    upstream: str
    upstream_cells: IntervalSet
    late: bool = False

    @property
    def words(self) -> str:
        """Say what happened upstream."""
        return f"{self.upstream} {'got, lost or changed rows' if self.late else 'changed'}"


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
            or owed one; else those stale ones inside the late window of a model that nobody reads.
            Where others read it, or the source that got late data, several models have to move at
            once, which takes a plan: the automatic one of late data, or one that a person makes.
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
    def late_cells(self) -> IntervalSet:
        """The stale cells that read a source which got, lost or changed rows since."""
        return IntervalSet.union_all(one.cells for one in self.stale if one.late)

    @property
    def overtaken_cells(self) -> IntervalSet:
        """The stale cells that read a model whose content changed since."""
        return IntervalSet.union_all(one.cells for one in self.stale if not one.late)

    def left(self, built: IntervalSet) -> IntervalSet:
        """Give what a plan still has to do, of whose cells its workspace has built these.

        Late data that arrived since is no reason to build one of them again.
        """
        return self.gaps | self.overtaken_cells | self.owed | (self.late_cells - built)

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
    first, last = (window.start, window.end) if window else (None, None)
    needed = required(model.cadence, start=first, end=last, now=now)
    ready = view.ready(model.name) & needed
    kept = view.kept(model, needed)  # under the old definition: nothing is done to it
    needed -= kept - ready
    gaps = missing(model.cadence, needed, ready)
    stale = tuple(_stale(graph, view, model, needed - kept, reads or {}))
    overtaken = IntervalSet.union_all(one.cells for one in stale)
    owed = view.owed.get(model.name, IntervalSet.empty()) & (ready - kept)
    refresh = IntervalSet.empty()
    if view.environment.is_workspace:
        refresh = overtaken | owed
    elif not graph.readers(model.name):
        shared = IntervalSet.union_all(one.cells for one in stale if _is_shared(graph, one))
        refresh = (overtaken & last_cells(model, ready, model.late_window)) - shared
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


def _is_shared(graph: Graph, stale: Stale) -> bool:
    """Whether late data concerns other models too, which must then move together."""
    return stale.late and len(graph.readers(stale.upstream)) > 1


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
    finds: dict[bool, _Overtaken] = {False: _Overtaken(graph, view, model, state)}
    for upstream in model.reads:
        late = upstream.name in graph.sources
        theirs = (view.sources if late else view.models).get(upstream.name)
        if theirs is None:
            continue
        if late not in finds:
            finds[late] = _Overtaken(graph, view, model, _by_sources(state))
        found = finds[late].by(upstream, theirs, reads.get(upstream.name))
        cells = IntervalSet.union_all(cells for _, cells in found) & needed
        if cells:
            changed = IntervalSet.of(run.interval for run, cells in found if cells & needed)
            yield Stale(cells, upstream.name, changed, late)


@dataclass
class _Overtaken:
    """Finds what an upstream has overtaken of one model; the model's runs are sorted once."""

    graph: Graph
    view: StateView
    model: Model
    state: ModelState

    def by(
        self, upstream: Upstream, theirs: ModelState, columns: frozenset[str] | None
    ) -> list[tuple[ReadyRun, IntervalSet]]:
        """Pair each newer run of an upstream with the cells that it has overtaken."""
        newer = [run for run in theirs.runs if run.changed_at.latest(columns) > self._oldest]
        return list(overtaken(self._reader, upstream, newer, columns)) if newer else []

    @cached_property
    def _oldest(self) -> int:
        opened = self.view.environment.opened
        oldest = min(run.built_at for run in self.state.runs)
        return oldest if opened is None else min(oldest, opened)

    @cached_property
    def _reader(self) -> Reader:
        return Reader.of(self.graph, self.model, self.state, self.view.environment.opened)


def _by_sources(state: ModelState) -> ModelState:
    """Take the cells as built when their sources were pinned, whatever a publication made of it."""
    runs = tuple(
        run if run.sources_at == run.built_at else replace(run, built_at=run.sources_at)
        for run in state.runs
    )
    return replace(state, runs=runs)
