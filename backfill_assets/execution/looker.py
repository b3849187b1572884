"""Who looks for work, and at what: prod, and what every plan fills and builds. No Spark, no table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import RequestError
from backfill_assets.execution.leftover import BUILT_APART
from backfill_assets.execution.opening import look, open_run
from backfill_assets.execution.scenes import Scene
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.automation import Automation
from backfill_assets.planning.plan import Build
from backfill_assets.snapshots.environment import PROD, workspace_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from backfill_assets.planning.plan import Plan
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store

MOST = 40_000
"""About how many cells one look reads per environment, so that none takes long; the rest is next."""


@dataclass(frozen=True, slots=True)
class Looker:
    """Who looks, and with what.

    Attributes:
        store: the state.
        loaded: the declarations of this process.
        data_root: folder or URI under which tables lie.
        now: the instant (UTC).
        most: about how many cells are read per environment or plan; one model at least is asked about.
    """

    store: Store
    loaded: Loaded
    data_root: str
    now: datetime
    most: int = MOST


def prod_scene(looker: Looker, plans: Sequence[StoredPlan]) -> Scene:
    """Look at prod; cells that its open plans have are theirs."""
    run = open_run(
        looker.store,
        looker.loaded.graph,
        environment=PROD,
        spark=_no_spark,
        data_root=looker.data_root,
        clock=lambda: looker.now,
        run_id="sensor",
        worked_out=looker.loaded,
    )
    there = looker.store.pointers(PROD)
    names = [
        name
        for name in run.graph.order
        if name in looker.loaded.graph.models
        and name in there
        and looker.loaded.graph.models[name].automated is not Automation.OFF
        and run.graph.models[name].cadence.grid == looker.loaded.graph.models[name].cadence.grid
    ]
    others: dict[str, IntervalSet] = {}
    for plan in plans:
        for name, cells in plan.cells.items():
            if plan.environment == PROD:
                others[name] = others.get(name, IntervalSet.empty()) | cells
    return Scene(run, there, looker.loaded, names, looker.now, looker.now, others=others)


def plan_scenes(looker: Looker, plan: Plan) -> Iterator[Scene]:
    """Give the environment whose gaps a plan fills, and the workspace where it builds the rest."""
    where = {(Build.GAP_FILL,): plan.environment, BUILT_APART: workspace_name(plan.plan_id)}
    for builds, environment in where.items():
        within = {one.model: one.cells for one in plan.models if one.build in builds and one.cells}
        if not within:
            continue
        run = look(
            looker.store,
            looker.loaded.graph,
            environment=environment,
            spark=_no_spark,
            data_root=looker.data_root,
            clock=lambda: looker.now,
            run_id="sensor",
            snapshots=looker.loaded.snapshots,
        )
        there = looker.store.pointers(environment)
        names = [name for name in run.graph.order if name in within and name in there]
        yield Scene(
            replace(run, batch_cells=plan.batch_cells),
            there,
            looker.loaded,
            names,
            plan.until,
            looker.now,
            plan_id=plan.plan_id,
            within=within,
        )


def _no_spark() -> Any:  # noqa: ANN401 - there is none
    raise RequestError(
        found="looking for work needs no Spark, and something asked for it", do="report it"
    )
