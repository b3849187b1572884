"""Projects for tests, and plans, made by the one way that there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.engine.plans.making import keep, plan_of
from backfill_assets.engine.project.project import Project
from backfill_assets.snapshots.loaded import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.state.store import Store


def project_of(
    store: Store,
    graph: Graph,
    *,
    clock: Callable[[], datetime],
    data_root: object,
    **given: Any,  # noqa: ANN401
) -> Project:
    """A project over a state, with the models of a graph; without Spark, unless it is given."""
    usual: dict[str, Any] = {"spark": _no_spark, "run_id": "test"}
    return Project(
        store=store,
        loaded=Loaded.of(graph),
        data_root=str(data_root),
        clock=clock,
        **{**usual, **given},
    )


def plan_made(
    store: Store,
    graph: Graph,
    request: PlanRequest,
    *,
    clock: Callable[[], datetime],
    data_root: object,
) -> Plan:
    """Make and keep a plan for the models of a graph, from what was looked at before."""
    project = project_of(store, graph, clock=clock, data_root=data_root)
    plan = plan_of(project, request)
    keep(project, plan)
    return plan


def _no_spark() -> None:
    raise RuntimeError("a plan was to be made without Spark")
