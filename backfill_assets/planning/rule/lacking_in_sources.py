"""Cells that wait for rows of a source, by what was seen when the source was looked at last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_without_input
from backfill_assets.models.source import WhenEmpty

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
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
