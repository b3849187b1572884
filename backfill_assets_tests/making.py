"""Plans for tests, made by the one way that there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.execution.making import PlanMaker
from backfill_assets.snapshots.loaded import loaded

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan import Plan
    from backfill_assets.planning.request import PlanRequest
    from backfill_assets.state.store import Store


def plan_made(
    store: Store,
    graph: Graph,
    request: PlanRequest,
    *,
    clock: Callable[[], datetime],
    data_root: object,
) -> Plan:
    """Make and keep a plan for the models of a graph, from what was looked at before."""
    maker = PlanMaker(
        store=store,
        loaded=loaded(graph),
        data_root=str(data_root),
        clock=clock,
        spark=_no_spark,
    )
    plan = maker.plan(request)
    maker.keep(plan)
    return plan


def _no_spark() -> None:
    raise RuntimeError("a plan was to be made without Spark")
