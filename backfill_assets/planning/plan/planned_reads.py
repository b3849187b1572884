"""Find the published cells that planned cells read; they must not move until the promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read
from backfill_assets.planning.plan.plan import Build, PlannedRead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.planning.plan.plan_state import PlanState


def planned_reads(
    planned: PlannedGraph, model: Model, cells: IntervalSet, built: Mapping[str, ModelPlan]
) -> tuple[PlannedRead, ...]:
    """Give the published cells that the planned cells of a model read, upstream by upstream.

    Args:
        planned: what the environment is to run, and what it publishes.
        model: the reader.
        cells: its planned cells.
        built: the plan's work on the upstreams: cells that the plan itself builds can't move.
    """
    return tuple(_reads(planned, model, cells, built)) if cells else ()


def _reads(
    planned: PlannedGraph, model: Model, cells: IntervalSet, built: Mapping[str, ModelPlan]
) -> Iterator[PlannedRead]:
    state, columns = planned.state, planned.reads(model.name)
    for up in model.reads:
        node = planned.graph.node(up.name)
        read = cells_read(model.cadence, up, node.cadence, cells, until=planned.now)
        named = columns.get(up.name)
        listed = None if named is None else tuple(sorted(named))
        if up.name in planned.graph.sources:
            yield PlannedRead(
                up.name, listed, read, delta_version=state.source_heads.get(up.name, -1)
            )
            continue
        published = _published(state, up, read, built)
        if published:
            pointer = state.view.models[up.name].pointer
            yield PlannedRead(up.name, listed, published, pointer.version, pointer.delta_version)


def _published(
    state: PlanState, up: Upstream, read: IntervalSet, built: Mapping[str, ModelPlan]
) -> IntervalSet:
    """Those that the environment publishes, and that the plan does not build itself."""
    own = built.get(up.name)
    if own is not None and own.build is Build.NEW_VERSION:
        return IntervalSet.empty()
    published = read & state.view.ready(up.name)
    return published if own is None else published - own.certain
