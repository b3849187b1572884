"""Draw the picture that planning works on: no Spark, nothing but the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.project.environment_graph import environment_graph
from backfill_assets.engine.project.plan_age import standing_plans
from backfill_assets.engine.project.run_context import source_path
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.smaller_window import furthest_read
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets.warehouse.files.tables import head

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.engine.project.project import Project
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.snapshots.state_view import ModelState
    from backfill_assets.state.store import Store


def plan_state(project: Project, environment: str, now: datetime) -> PlanState:
    """Tell what an environment runs, and what is there already.

    Args:
        project: with the declarations that a plan is made for.
        environment: its name.
        now: the instant that history ends at (UTC).

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    store, loaded = project.store, project.loaded
    graph, snapshots = loaded.graph, loaded.snapshots
    found = environment_graph(store, loaded, store.environments.get(environment))
    pointers = store.environments.pointers(environment)
    sources = {
        name: head(source_path(project.data_root, one.path)) for name, one in graph.sources.items()
    }
    return PlanState(
        view=store.views.of(environment),
        running={name: found.running[name] for name in pointers},
        built=_built(store, environment, snapshots, pointers),
        open_plans=standing_plans(store, now),
        furthest_read=furthest_read(graph, now),
        source_heads=sources,
        plan_days=project.terms.plan_days,
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
    models = store.views.view_with(environment, instead).models
    return {one.version: models[name] for name, one in instead.items()}


def _known_head(store: Store, version: str) -> int:
    try:
        return store.versions.known_head(version)
    except UnknownVersionError:
        return -1
