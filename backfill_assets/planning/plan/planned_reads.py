"""Find the published cells that planned cells read; they must not move until the promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read
from backfill_assets.planning.plan.plan import Build, PlannedRead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.planning.plan.plan_state import PlanState


def planned_reads(
    planned_graph: PlannedGraph,
    state: PlanState,
    model: Model,
    cells: IntervalSet,
    planned: Mapping[str, ModelPlan],
    now: datetime,
) -> tuple[PlannedRead, ...]:
    """Give the published cells that the planned cells of a model read, upstream by upstream.

    Args:
        planned_graph: what the environment is to run.
        state: the ready cells.
        model: the reader.
        cells: its planned cells.
        planned: the plan's work on the upstreams: cells that the plan itself builds can't move.
        now: the instant that history ends at.
    """
    if not cells:
        return ()
    columns = planned_graph.reads(model.name)
    return tuple(_reads(planned_graph, state, model, cells, planned, (columns, now)))


def _reads(
    planned_graph: PlannedGraph,
    state: PlanState,
    model: Model,
    cells: IntervalSet,
    planned: Mapping[str, ModelPlan],
    how: tuple[Mapping[str, frozenset[str]], datetime],
) -> Iterator[PlannedRead]:
    columns, now = how
    for up in model.reads:
        theirs = planned_graph.graph.node(up.name)
        read = cells_read(model.cadence, up, theirs.cadence, cells, until=now)
        named = columns.get(up.name)
        listed = None if named is None else tuple(sorted(named))
        if up.name in planned_graph.graph.sources:
            yield PlannedRead(
                up.name, listed, read, delta_version=state.source_heads.get(up.name, -1)
            )
            continue
        published = _published(state, up, read, planned)
        if published:
            pointer = state.view.models[up.name].pointer
            yield PlannedRead(up.name, listed, published, pointer.version, pointer.delta_version)


def _published(
    state: PlanState, up: Upstream, read: IntervalSet, planned: Mapping[str, ModelPlan]
) -> IntervalSet:
    """Those that the environment publishes, and that the plan does not build itself."""
    own = planned.get(up.name)
    if own is not None and own.build is Build.NEW_VERSION:
        return IntervalSet.empty()
    published = read & state.view.ready(up.name)
    return published if own is None else published - own.certain
