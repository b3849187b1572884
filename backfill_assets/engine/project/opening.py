"""Open a run: the state, the environment's own models, and Spark for when it is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.environment_graph import (
    environment_graph,
    graph_to_fill,
    graph_with_removed,
    holds_what_is_unpublished,
)
from backfill_assets.engine.project.holds import refuse_hold
from backfill_assets.engine.project.iceberg import enter_missing
from backfill_assets.engine.project.run_context import PublishedCells, RunContext, table_path
from backfill_assets.models.source_reading import readings_text
from backfill_assets.snapshots.batch import GAP, PLANNED
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.loaded import Reads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.environment_graph import EnvironmentGraph
    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.state.store import Store


def open_run(
    project: Project,
    environment: str,
    *,
    root_id: str | None = None,
    published: PublishedCells = PublishedCells.KEPT,
) -> RunContext:
    """Bring the store, an environment and the loaded models together for one run.

    New models get their first pointers, also those of which nothing was ever published; every other runs the
    snapshot that its pointer names.

    Args:
        project: what is loaded, and what the run works with.
        environment: its name.
        root_id: of the root run or backfill; the run itself when it is none's re-execution.
        published: what to do with published cells that are asked for again; a protected
            environment keeps them whatever this says.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
        RequestError: it is a hold, in which nothing is built.
    """
    refuse_hold(project.store, environment)
    run = _pointed_run(project, environment)
    enter_missing(run)
    return replace(run, root_id=root_id or project.run_id, published=published)


def _pointed_run(project: Project, environment: str) -> RunContext:
    """Give new models their first pointers; look again if another process was first with another declaration."""
    run, own = _to_fill(project, environment)
    first = {
        snapshot.model.name: _pointed(project.store, run.environment, snapshot, project.data_root)
        for snapshot in own.new
    }
    for snapshot in own.new:
        at = first[snapshot.model.name]
        if at.environment == environment and at.fingerprint != snapshot.fingerprint.id:
            return _pointed_run(project, environment)
    return replace(run, pointers={**own.pointers, **first})


def look(project: Project, environment: str) -> RunContext:
    """Open a run that only reads: nothing is written, not even a first pointer. It sees what a run would fill.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    return _to_fill(project, environment)[0]


def look_at_published(project: Project, environment: str) -> RunContext:
    """Open a run that only reads, of all that an environment publishes: also of models that are not declared any more.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    run, own = _to_fill(project, environment)
    graph = graph_with_removed(own)
    removed = graph.models.keys() - run.graph.models.keys()
    if not removed:
        return run
    graph = _with_places(project.store, graph)
    return replace(run, graph=graph, reads=Reads(graph), removed=frozenset(removed))


def added_by_plans_alone(run: RunContext, names: Iterable[str]) -> frozenset[str]:
    """Name the new ones of some models whose tables hold what the environment does not publish: no run fills these."""
    stored = run.store.environments.pointers(run.environment.name)
    return frozenset(
        name
        for name in names
        if name not in stored
        and holds_what_is_unpublished(run.store, run.pointers[name].version, run.environment)
    )


def _with_places(store: Store, graph: Graph) -> Graph:
    """Say where sources lie that are not declared any more: where they were when they were looked at last."""
    observed = store.sources.observed()
    placed = {
        name: replace(source, path=observed[name].path)
        for name, source in graph.sources.items()
        if not source.path and name in observed
    }
    return replace(graph, sources={**graph.sources, **placed})


def look_as_pointed(project: Project, environment: str) -> RunContext:
    """Open a run that moves no pointer: every model that has one is as its pointer says.

    So a plan is applied: it was made for what the pointers name.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    stored = project.store.environments.get(environment)
    return _seen(project, stored, environment_graph(project.store, project.loaded, stored))


def _to_fill(project: Project, environment: str) -> tuple[RunContext, EnvironmentGraph]:
    stored = project.store.environments.get(environment)
    own = graph_to_fill(project.store, project.loaded, stored)
    return _seen(project, stored, own), own


def _seen(project: Project, environment: Environment, own: EnvironmentGraph) -> RunContext:
    return RunContext(
        project=project,
        environment=environment,
        graph=own.graph,
        pointers=own.pointers,
        reads=own.reads,
        until=project.clock(),
        root_id=project.run_id,
        changed=own.changed,
        misread=own.misread,
        fills=PLANNED if environment.is_workspace else GAP,
    )


def save_snapshot(store: Store, snapshot: Snapshot) -> None:
    """Keep what running a snapshot later needs."""
    fingerprint = snapshot.fingerprint
    store.snapshots.save_snapshot(
        fingerprint_id=fingerprint.id,
        model=snapshot.model.name,
        version=snapshot.version,
        definition=snapshot.definition(),
        logic=fingerprint.logic,
        upstream=fingerprint.upstream,
        metadata=fingerprint.metadata,
        sources=None if snapshot.sources is None else readings_text(snapshot.sources),
    )


def _pointed(store: Store, environment: Environment, snapshot: Snapshot, data_root: str) -> Pointer:
    """Give a model its first pointer in the environment; one that it has already stays.

    A model that an open plan is about to bring is left to that plan. So is one whose table others
    own, or that was taken back: only a plan takes over what such a table holds.
    """
    model, version = snapshot.model.name, snapshot.version
    for plan in store.environments.by_name():
        if plan.is_workspace and plan.follows == environment.name:
            brought = store.environments.own_pointers(plan.name).get(model)
            if brought is not None:
                return brought
    save_snapshot(store, snapshot)
    first_pointer = Pointer(environment.name, model, snapshot.fingerprint.id, version, -1)
    if holds_what_is_unpublished(store, version, environment):
        return first_pointer
    return store.environments.ensure_pointer(first_pointer, table_path(data_root, model, version))
