"""The one rule for what needs work.

A cell needs work when it is required and not ready (a gap), or when something that it reads has really
changed since the inputs of its batch were pinned (stale), unless a cutoff keeps it. In a plan's workspace
so does a cell that was declared wrong and is not rebuilt yet (owed), and one that was built from older
inputs than the published cell that it would replace (older). Restated cells of a table that stays are gaps
there: `Pointer.certain` hides the published ones. Filling gaps, resuming, propagation and sparing all follow
from this rule; `plan.left` says what of it is left of a plan.
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
from backfill_assets.planning.rule.stale import Stale, of_several, stale_of

if TYPE_CHECKING:
    from collections.abc import Mapping
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
        blocked: per upstream model, the cells that wait because cells they read are not ready.
        refresh: ready cells that may be rebuilt in the model's own table, where what they read is ready. In a
            plan's workspace: every stale, owed or older one. Elsewhere: stale ones inside the late window of
            a model without readers, if nothing else reads what changed and the change concerns one cell
            alone, so that one commit publishes all of it; which of them are, `late_work` says. Every other
            stale cell waits for a plan.
        owed: ready cells that were declared wrong and are not rebuilt yet.
        older: a workspace's cells that were made from older inputs than the published ones which they
            would replace.
        awaits: by source, stale cells that read a cell of it which has lost all of its rows since, where
            the source lets cells wait for rows: they stay as they are until it has some there again, or a
            person declares them wrong.
        kept: ready cells that an upstream has overtaken, or that were declared wrong, and that a cutoff
            keeps as they are: they need no work until it is lifted.
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
        return IntervalSet.union_all(part.cells for part in self.stale)

    @property
    def late_cells(self) -> IntervalSet:
        """The stale cells that read a source which got, lost or changed rows since."""
        return IntervalSet.union_all(part.cells for part in self.stale if part.late)

    @property
    def overtaken_cells(self) -> IntervalSet:
        """The stale cells that read a model whose content changed since."""
        return IntervalSet.union_all(part.cells for part in self.stale if not part.late)

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
    ready = view.ready(model.name)
    needed = required(model.cadence, now=now, ignore_cron=ignore_cron, ready=ready)
    ready &= needed
    kept = view.kept(model, needed)  # under the old definition: it is not built again
    needed -= kept - ready
    gaps = missing(model.cadence, needed, ready)
    stale = tuple(stale_of(graph, view, model, needed - kept, reads or {}, now))
    overtaken = IntervalSet.union_all(part.cells for part in stale)
    owed = view.owed[model.name] & (ready - kept)
    refresh = older = IntervalSet.empty()
    if view.environment.is_workspace:
        older = older_than_published(graph, view, model, reads or {}) & (needed - kept)
        refresh = overtaken | owed | older
    elif not graph.readers(model.name):
        shared = IntervalSet.union_all(part.cells for part in stale if part.is_shared(graph))
        inside = last_cells(model, ready, model.late_window) - shared
        refresh = (overtaken & inside) - of_several(model, stale)
    blocked = _blocked(graph, view, model, gaps | refresh, now)
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
        kept=_held_back_by_cutoff(graph, view, model, kept & ready, reads or {}, now),
    )


def _held_back_by_cutoff(
    graph: Graph,
    view: StateView,
    model: Model,
    kept: IntervalSet,
    reads: Mapping[str, frozenset[str]],
    now: datetime,
) -> IntervalSet:
    """Give the cells that would need work if no cutoff kept them."""
    if not kept:
        return kept
    stale = stale_of(graph, view, model, kept, reads, now)
    overtaken = IntervalSet.union_all(part.cells for part in stale)
    return overtaken | (view.owed[model.name] & kept)


def _blocked(
    graph: Graph, view: StateView, model: Model, gaps: IntervalSet, now: datetime
) -> dict[str, IntervalSet]:
    """Find the gaps that read upstream cells which are not ready, per upstream."""
    blocked: dict[str, IntervalSet] = {}
    for upstream in model.reads:
        upstream_model = graph.node(upstream.name)
        if not isinstance(upstream_model, Model) or upstream.name == model.name:
            continue
        ready = view.ready(upstream.name)
        waiting = cells_without_input(
            model.cadence, upstream, upstream_model.cadence, gaps, ready, until=now
        )
        if waiting:
            blocked[upstream.name] = waiting
    return blocked
