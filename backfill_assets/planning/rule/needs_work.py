"""The one rule for what needs work.

A required cell needs work when it is not ready (a gap), or when something that it reads has really changed
since the inputs of its batch were pinned (stale). A cell that an earlier definition has made also reads what
that definition reads. In a plan's workspace a cell also needs work when it was declared wrong and is not rebuilt
yet (owed), or was built from older inputs than the published cell that it would replace (older). A cell that a
cutoff keeps needs none.

Filling, resuming, rebuilding readers and sparing unchanged cells all follow from this rule. What is left of a plan
(`plan.left`) is what the rule finds in its workspace: there a restated cell is a gap (`Pointer.certain`) until
the workspace has built it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.required import missing, required
from backfill_assets.models.cells import cells_without_input
from backfill_assets.models.model import Model
from backfill_assets.planning.rule.lacking_in_sources import emptied_in_sources
from backfill_assets.planning.rule.older import older_than_published
from backfill_assets.planning.rule.reopening import last_cells
from backfill_assets.planning.rule.stale import Stale, changed_with_others, stale_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.state_view import StateView


@dataclass(frozen=True, slots=True)
class Work:
    """What one model needs.

    Attributes:
        required: the cells that must hold audited data.
        ready: those that do, stale ones included.
        gaps: those that do not.
        stale: ready cells that an upstream's change has overtaken, by upstream.
        blocked: gaps, and cells to refresh, that read a cell which is not ready, by the upstream model.
        refresh: ready cells that may be built again without a further plan, and whose upstream cells are ready. In a
            workspace: every stale, owed or older cell. Elsewhere: stale cells in the late window of a model
            without readers, each overtaken by changes that concern no other cell, so that one commit publishes
            such a change as a whole; `LateWork.in_place` is what a run builds of them.
        owed: ready cells that were declared wrong and are not rebuilt yet.
        older: a workspace's cells that were built from older inputs than the published ones which they
            would replace.
        awaits: stale cells that read a cell of a source which has lost all of its rows since, by the source,
            if it is declared with `WhenEmpty.WAIT`: they stay as they are until that cell has rows again, or a
            person declares them wrong.
        kept: ready cells that are stale or were declared wrong, and that need no work until the cutoff
            which keeps them is lifted.
    """

    required: IntervalSet
    ready: IntervalSet
    gaps: IntervalSet
    stale: tuple[Stale, ...] = ()
    blocked: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    refresh: IntervalSet = field(default_factory=IntervalSet.empty)
    owed: IntervalSet = field(default_factory=IntervalSet.empty)
    older: IntervalSet = field(default_factory=IntervalSet.empty)
    awaits: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    kept: IntervalSet = field(default_factory=IntervalSet.empty)

    @property
    def stale_cells(self) -> IntervalSet:
        """Every stale cell."""
        return _cells_of(self.stale)

    @property
    def late_cells(self) -> IntervalSet:
        """The stale cells that read a source which got, lost or changed rows since."""
        return _cells_of(part for part in self.stale if part.late)

    @property
    def stale_by_models(self) -> IntervalSet:
        """The stale cells that read a model whose content changed since."""
        return _cells_of(part for part in self.stale if not part.late)

    @property
    def runnable(self) -> IntervalSet:
        """The gaps whose inputs are all ready."""
        return self.gaps - IntervalSet.union_all(self.blocked.values())


def needs_work(
    graph: Graph,
    view: StateView,
    model: Model,
    *,
    now: datetime,
    reads: Mapping[str, frozenset[str]] | None = None,
    ignore_cron: bool = False,
) -> Work:
    """Apply the rule to one model.

    Args:
        graph: every model and source.
        view: what is ready, at the environment's pins.
        model: the one asked about.
        now: the instant that history ends at (UTC).
        reads: per upstream, the columns that the model reads (lineage); absent means all.
        ignore_cron: whether every cell that is over is required, whatever the cron says.
    """
    reads = reads or {}
    needed, ready, kept = _required(view, model, now, ignore_cron=ignore_cron)
    changeable = needed - kept
    stale = tuple(stale_of(graph, view, model, changeable, reads, now))
    owed = view.owed[model.name] & ready & changeable
    refresh = older = IntervalSet.empty()
    if view.environment.is_workspace:
        older = older_than_published(graph, view, model, reads) & changeable
        refresh = _cells_of(stale) | owed | older
    elif not graph.readers(model.name):
        window = last_cells(model, ready, model.late_window)
        shared = _cells_of(part for part in stale if part.is_shared(graph))
        refresh = (_cells_of(stale) & window) - shared - changed_with_others(model, stale)
    gaps = missing(model.cadence, needed, ready)
    blocked = _blocked(graph, view, model, gaps | refresh, now)
    kept &= ready
    if kept:
        overtaken = _cells_of(stale_of(graph, view, model, kept, reads, now))
        kept &= overtaken | view.owed[model.name]
    return Work(
        required=needed,
        ready=ready,
        gaps=gaps,
        stale=stale,
        blocked=blocked,
        refresh=refresh - IntervalSet.union_all(blocked.values()),
        owed=owed,
        older=older,
        awaits=emptied_in_sources(graph, view, model, stale),
        kept=kept,
    )


def stale_by_upstream(
    graph: Graph, view: StateView, model: Model, now: datetime, reads: Mapping[str, frozenset[str]]
) -> tuple[Stale, ...]:
    """Apply the rule to what is ready alone: give what `Work.stale` has, of the arguments of `needs_work`."""
    needed, _, kept = _required(view, model, now, ignore_cron=False)
    return tuple(stale_of(graph, view, model, needed - kept, reads, now))


def _required(
    view: StateView, model: Model, now: datetime, *, ignore_cron: bool
) -> tuple[IntervalSet, IntervalSet, IntervalSet]:
    """Give the required cells, those of them that are ready, and all that a cutoff keeps."""
    ready = view.ready(model.name)
    needed = required(model.cadence, now=now, ignore_cron=ignore_cron, ready=ready)
    ready &= needed
    kept = view.kept(model, needed)
    return needed - (kept - ready), ready, kept  # a gap before the cutoff is not filled


def _blocked(
    graph: Graph, view: StateView, model: Model, cells: IntervalSet, now: datetime
) -> dict[str, IntervalSet]:
    """Find the cells that read cells of another model which are not ready, by that model."""
    blocked: dict[str, IntervalSet] = {}
    for upstream in model.reads:
        upstream_model = graph.node(upstream.name)
        if not isinstance(upstream_model, Model) or upstream.name == model.name:
            continue
        ready = view.ready(upstream.name)
        waiting = cells_without_input(
            model.cadence, upstream, upstream_model.cadence, cells, ready, until=now
        )
        if waiting:
            blocked[upstream.name] = waiting
    return blocked


def _cells_of(stale: Iterable[Stale]) -> IntervalSet:
    return IntervalSet.union_all(part.cells for part in stale)
