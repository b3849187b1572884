"""Draw the picture that planning works on, and make a plan from it: no Spark, nothing but the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.execution.environment_graph import environment_graph
from backfill_assets.execution.plan_age import standing_plans
from backfill_assets.execution.run_context import source_path
from backfill_assets.planning.build_plan import build_plan
from backfill_assets.planning.plan_json import content_hash, plan_json
from backfill_assets.planning.plan_state import PlanState
from backfill_assets.planning.smaller_window import furthest_read
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets.warehouse.tables import head

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan import Plan
    from backfill_assets.planning.request import PlanRequest
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.snapshots.state_view import ModelState
    from backfill_assets.state.store import Store


def plan_state(  # noqa: PLR0913 - the state, the code, and three things that people set
    store: Store,
    loaded: Graph,
    environment: str,
    *,
    data_root: str,
    now: datetime,
    known: Loaded | None = None,
    plan_days: int = 7,
) -> PlanState:
    """Tell what an environment runs, and what is there already.

    Args:
        store: the state.
        loaded: the models and sources that are declared now.
        environment: its name.
        data_root: folder or URI under which tables lie.
        now: the instant that history ends at (UTC).
        known: what is known of the loaded models already.
        plan_days: after how many days a plan expires.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    snapshots = known.snapshots if known is not None else snapshots_of(loaded)
    found = environment_graph(store, loaded, store.environment(environment), snapshots)
    pointers = store.pointers(environment)
    sources = {name: head(source_path(data_root, one.path)) for name, one in loaded.sources.items()}
    return PlanState(
        view=store.view(environment),
        running={name: found.running[name] for name in pointers},
        built=_built(store, environment, snapshots, pointers),
        open_plans=standing_plans(store, now),
        furthest_read=furthest_read(loaded, now),
        source_heads=sources,
        plan_days=plan_days,
    )


def make_plan(  # noqa: PLR0913 - what plan_state takes, a request and a clock
    store: Store,
    loaded: Graph,
    request: PlanRequest,
    *,
    clock: Callable[[], datetime],
    data_root: str,
    known: Loaded | None = None,
    plan_days: int = 7,
    estimated: Callable[[Plan], Plan] = lambda plan: plan,
) -> Plan:
    """Make a plan and keep it, unless there is nothing to do.

    Args:
        store: the state.
        loaded: the models and sources that are declared now.
        request: what a person asks.
        clock: gives the instant (UTC).
        data_root: folder or URI under which tables lie.
        known: what is known of the loaded models already.
        plan_days: after how many days a plan expires.
        estimated: adds what the plan will take.

    Raises:
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    now = clock()
    state = plan_state(
        store,
        loaded,
        request.environment,
        data_root=data_root,
        now=now,
        known=known,
        plan_days=plan_days,
    )
    plan = estimated(build_plan(request, loaded, state, now, known))
    if not plan.is_empty:
        save_plan(store, plan)
    return plan


def save_plan(store: Store, plan: Plan) -> None:
    """Keep a plan as it was shown; the same one saved again stays as it is."""
    store.save_plan(
        StoredPlan(
            plan_id=plan.plan_id,
            environment=plan.environment,
            status=PlanStatus.PROPOSED,
            content=plan_json(plan),
            content_hash=content_hash(plan),
            created_at=plan.created_at,
            created_by=plan.request.asked_by,
            reason=plan.request.reason,
            expires_at=plan.expires_at,
            cells={one.model: one.cells for one in plan.models if one.cells},
        )
    )


def _built(
    store: Store,
    environment: str,
    snapshots: Mapping[str, Snapshot],
    pointers: Mapping[str, Pointer],
) -> dict[str, ModelState]:
    """Read what the loaded models' own tables hold already, where the environment reads others."""
    instead: dict[str, Pointer] = {}
    for name, snapshot in snapshots.items():
        at = pointers.get(name)
        if at is None or at.version != snapshot.version:
            head_known = _known_head(store, snapshot.version)
            if head_known >= 0:
                fingerprint = snapshot.fingerprint.id
                instead[name] = Pointer(
                    environment, name, fingerprint, snapshot.version, head_known
                )
    if not instead:
        return {}
    models = store.view_with(environment, instead).models
    return {one.version: models[name] for name, one in instead.items()}


def _known_head(store: Store, version: str) -> int:
    try:
        return store.known_head(version)
    except UnknownVersionError:
        return -1
