"""Find cells of a workspace that read older inputs than the published cells that they would replace.

An environment may build a cell again while a plan waits, after late rows or a restatement. An earlier
build of that cell by the plan must not be published over the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.restated import onward
from backfill_assets.models.cells import cells_reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.state_view import ReadyRun, StateView


def older_than_published(
    graph: Graph, view: StateView, model: Model, reads: Mapping[str, frozenset[str]]
) -> IntervalSet:
    """Give the workspace's cells that have not read a change which the published ones may have read.

    Of a model that reads itself, the cells built after them are included.

    The published cell pinned its inputs later, and an input of the workspace's cell has changed
    since the latter pinned its own. What a reader declares about reopening plays no part here,
    and a source that is not observed counts as changed. So do other inputs of a model: one that
    reads no upstream, or is volatile, may compute another answer each time.

    Args:
        graph: every model and source.
        view: the workspace's state.
        model: the one asked about.
        reads: per upstream, the columns that the model reads (lineage); absent means all.
    """
    state = view.models.get(model.name)
    runs = [run for run in (state.runs if state else ()) if _is_overtaken(run)]
    upstreams = [read for read in model.reads if read.name != model.name]
    if model.volatile or not upstreams:
        older = IntervalSet.of(run.interval for run in runs)
    else:
        older = IntervalSet.union_all(
            _unread(graph, view, model, upstream, run, reads.get(upstream.name))
            for run in runs
            for upstream in upstreams
        )
    return onward(older, view.own(model.name)) if model.in_order else older


def _is_overtaken(run: ReadyRun) -> bool:
    return run.own and run.replaces is not None and run.sources_at < run.replaces


def _unread(
    graph: Graph,
    view: StateView,
    model: Model,
    upstream: Upstream,
    run: ReadyRun,
    columns: frozenset[str] | None,
) -> IntervalSet:
    """Give the cells of a run that read something of an upstream which changed after it was built."""
    own, is_source = IntervalSet.of([run.interval]), upstream.name in graph.sources
    upstream_state = (view.sources if is_source else view.models).get(upstream.name)
    if upstream_state is None:
        return own if is_source else IntervalSet.empty()
    since = run.sources_at if is_source else run.built_at
    changed = IntervalSet.of(
        each.interval for each in upstream_state.runs if each.changed_at.latest(columns) > since
    )
    cadence = graph.node(upstream.name).cadence
    return cells_reading(model.cadence, upstream, cadence, changed) & own
