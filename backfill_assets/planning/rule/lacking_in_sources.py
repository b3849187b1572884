"""Cells that wait for rows of a source, by what was seen when the source was looked at last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading, cells_without_input
from backfill_assets.models.source import WhenEmpty

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.rule.stale import Stale
    from backfill_assets.snapshots.state_view import StateView


def lacking_in_sources(
    graph: Graph, view: StateView, model: Model, cells: IntervalSet, now: datetime
) -> dict[str, IntervalSet]:
    """Give the cells of a model that wait, by the observed source whose rows they wait for.

    Only a source that declares so lets cells wait.

    Args:
        graph: every model and source.
        view: the environment's state.
        model: whose cells they are.
        cells: those that are asked about.
        now: the instant that history ends at (UTC).
    """
    by_source: dict[str, IntervalSet] = {}
    for upstream in model.reads:
        source, seen = graph.sources.get(upstream.name), view.sources.get(upstream.name)
        if source is None or seen is None or source.when_empty is not WhenEmpty.WAIT:
            continue
        waiting = cells_without_input(
            model.cadence, upstream, source.cadence, cells, seen.ready, until=now
        )
        if waiting:
            by_source[source.name] = waiting | by_source.get(source.name, IntervalSet.empty())
    return by_source


def emptied_in_sources(
    graph: Graph, view: StateView, model: Model, stale: Iterable[Stale]
) -> dict[str, IntervalSet]:
    """Give the stale cells of a model that wait, by the observed source that has lost the rows they were built from.

    A cell counts that reads a cell of the source which has lost all of its rows since. One that was built without
    these rows does not: it has lost nothing. Only a source that declares so lets cells wait.

    Args:
        graph: every model and source.
        view: the environment's state.
        model: whose cells they are.
        stale: its stale cells, by upstream.
    """
    reads = {upstream.name: upstream for upstream in model.reads}
    by_source: dict[str, IntervalSet] = {}
    for part in stale:
        source, seen = graph.sources.get(part.upstream), view.sources.get(part.upstream)
        if source is None or seen is None or source.when_empty is not WhenEmpty.WAIT:
            continue
        gone = part.upstream_cells & seen.emptied
        upstream = reads[part.upstream]
        waiting = cells_reading(model.cadence, upstream, source.cadence, gone) & part.cells
        if waiting:
            by_source[source.name] = waiting
    return by_source
