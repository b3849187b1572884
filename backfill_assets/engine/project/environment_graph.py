"""Bring an environment and the loaded models together: each runs the snapshot it points at.

This only looks. A model whose declaration changed, be it only an audit or a word, goes on with the
environment's own snapshot until a plan promotes the new one; it is reported, never silently run. A
workspace runs nothing but the snapshots that its pointers name. What a run has yet to write is listed:
the first pointers of new models. A model of which nothing was ever published is as good as new: a run
takes it as it is declared. Plans are made and applied for what the pointers name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.project.relied_sources import as_relied_on
from backfill_assets.models.fingerprint import Fingerprint, fingerprints
from backfill_assets.models.graph import stored_graph, with_upstreams
from backfill_assets.models.source_reading import (
    changed_sources,
    read_readings,
    source_readings,
    with_relied_on,
)
from backfill_assets.snapshots.environment import PROD, Pointer
from backfill_assets.snapshots.loaded import Reads
from backfill_assets.snapshots.snapshot import Snapshot
from backfill_assets.state.versions import UnknownVersionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.engine.project.relied_sources import Misread, Relied
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source
    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.state.store import Store


@dataclass(frozen=True, slots=True)
class EnvironmentGraph:
    """The models that an environment runs.

    Attributes:
        graph: its snapshots' models, and the sources as these snapshots declare them.
        pointers: where it keeps each model; a new one where it would be kept.
        reads: per model, what it reads by column.
        changed: models whose loaded declaration is not the environment's: a plan is owed.
        running: the snapshots that its pointers name, models that are not loaded any more included.
        misread: by model, the sources that its snapshot relies on otherwise than others do whose
            declarations count here, and of each of them the models to plan; it can't be run until
            a plan has made these anew.
        new: snapshots of models that it never saw, and of those that go on as they are declared.
    """

    graph: Graph
    pointers: Mapping[str, Pointer]
    reads: Mapping[str, Mapping[str, frozenset[str]]]
    changed: tuple[str, ...]
    running: Mapping[str, Snapshot]
    misread: Misread = field(default_factory=dict[str, "Mapping[str, tuple[str, ...]]"])
    new: tuple[Snapshot, ...] = ()


def environment_graph(
    store: Store, known: Loaded, environment: Environment, unused: frozenset[str] = frozenset()
) -> EnvironmentGraph:
    """Tell what an environment runs, and how that differs from what is loaded.

    Args:
        store: the state.
        known: the models and sources that are declared now.
        environment: whose.
        unused: models whose pointers were never of use: they go on as they are declared, unless what is published
            rests on their snapshots.
    """
    loaded, snapshots = known.graph, known.snapshots
    pointers = store.environments.pointers(environment.name)
    running = _running(store, loaded, pointers, snapshots)
    if environment.is_workspace:
        graph = _workspace_graph(environment, running, pointers, loaded)
        graph, misread = _as_relied_on(graph, running, environment, pointers)
        return EnvironmentGraph(graph, pointers, Reads(graph), (), running, misread)
    changed = _changed(running, known)
    replaced = _replaced(running, changed, unused)
    pointers = {name: at for name, at in pointers.items() if name not in replaced}
    changed = tuple(name for name in changed if name not in replaced)
    kept = {
        name: running[name].model
        for name in running
        if name in changed or name not in loaded.models
    }
    graph = loaded
    misread: Misread = {}
    if changed:
        graph = _graph({**loaded.models, **kept}, loaded)
        kept_running = {name: running[name] for name in pointers}
        graph, misread = _as_relied_on(graph, kept_running, environment, pointers)
    new = _new(graph, pointers, snapshots, changed)
    first = {snapshot.model.name: _first(environment, snapshot) for snapshot in new}
    reads = known.reads if graph is loaded else Reads(graph)
    seen = {**first, **pointers}
    return EnvironmentGraph(graph, seen, reads, changed, running, misread, new)


def graph_to_fill(store: Store, known: Loaded, environment: Environment) -> EnvironmentGraph:
    """Tell what a run fills: as `environment_graph`, but models of which nothing was ever published as declared.

    One whose table, as declared, only a plan may take over waits for this plan.

    Args:
        store: the state.
        known: the models and sources that are declared now.
        environment: whose.
    """
    own = environment_graph(store, known, environment)
    unused = store.environments.never_filled(environment.name) if own.changed else frozenset[str]()
    if unused.isdisjoint(own.changed):
        return own
    return _filled(store, known, environment, unused)


def _filled(
    store: Store, known: Loaded, environment: Environment, unused: frozenset[str]
) -> EnvironmentGraph:
    own = environment_graph(store, known, environment, unused)
    taken = {
        snapshot.model.name
        for snapshot in own.new
        if holds_what_is_unpublished(store, snapshot.version, environment)
    }
    return _filled(store, known, environment, unused - taken) if unused & taken else own


def graph_with_removed(own: EnvironmentGraph) -> Graph:
    """Give the models that an environment runs, and those that it publishes though they are not declared any more.

    One that reads what is not there any more is left out.
    """
    models = {name: snapshot.model for name, snapshot in own.running.items()}
    relied = {name: snapshot.sources for name, snapshot in own.running.items()}
    removed = models.keys() - own.graph.models.keys() - own.graph.sources.keys()
    return _graph_of(
        {**models, **own.graph.models}, own.graph.models, removed, own.graph.sources, relied
    )


def holds_what_is_unpublished(store: Store, version: str, environment: Environment) -> bool:
    """Whether a table holds what an environment does not publish: only a plan takes it over."""
    try:
        owner, head = store.versions.owner(version), store.versions.known_head(version)
    except UnknownVersionError:
        return False
    return owner not in (None, environment.name) or (environment.protected and head >= 0)


def sources_read(store: Store, loaded: Loaded) -> Mapping[str, Source]:
    """Give every source as prod reads it: as its snapshots declare it, until a plan has promoted another.

    Who looks at sources by itself looks so, as runs do: what is known of a source's cells is known for
    one declaration, and is compared anew for another.

    Args:
        store: the state.
        loaded: the models and sources that are declared now.
    """
    prod = store.environments.get(PROD)
    return graph_to_fill(store, loaded, prod).graph.sources


def _changed(running: Mapping[str, Snapshot], known: Loaded) -> tuple[str, ...]:
    """Name the models whose loaded declaration is not the one that an environment runs."""
    return tuple(
        name
        for name in known.graph.order
        if name in running and running[name].fingerprint != known.snapshots[name].fingerprint
    )


def _replaced(
    running: Mapping[str, Snapshot], changed: tuple[str, ...], unused: frozenset[str]
) -> frozenset[str]:
    """Name the changed models that go on as new ones, since nothing of them was ever published.

    One stays as it is while a reader of it has published cells: these rest on its snapshot.
    """
    kept = {up.name for name in running.keys() - unused for up in running[name].model.reads}
    replaced: list[str] = []
    for name in reversed(changed):
        if name in unused and name not in kept:
            replaced.append(name)
        else:
            kept.update(up.name for up in running[name].model.reads)
    return frozenset(replaced)


def _running(
    store: Store, loaded: Graph, pointers: Mapping[str, Pointer], snapshots: Mapping[str, Snapshot]
) -> dict[str, Snapshot]:
    """Read back the snapshots that pointers name, where they are not the loaded ones."""
    same = {
        name: snapshots[name]
        for name, pointer in pointers.items()
        if name in snapshots and pointer.fingerprint == snapshots[name].fingerprint.id
    }
    if len(same) == len(pointers):
        return same
    stored = {
        name: store.snapshots.get(at.fingerprint)
        for name, at in pointers.items()
        if name not in same
    }
    read = {name: snapshot.declared for name, snapshot in stored.items()}
    # Fingerprinted again: a newer release may hash the same declaration to another id.
    graph = _graph({**{name: snapshot.model for name, snapshot in same.items()}, **read}, loaded)
    relied = {name: read_readings(snapshot.sources) for name, snapshot in stored.items()}
    otherwise = {
        name: readings
        for name, readings in relied.items()
        if readings is not None
        and name in graph.models
        and changed_sources(graph, graph.models[name], readings)
    }
    prints = fingerprints(graph, otherwise)
    as_saved = {
        name: Fingerprint(snapshot.logic, snapshot.upstream, snapshot.metadata)
        for name, snapshot in stored.items()
    }
    again = {
        name: Snapshot(read[name], prints.get(name, as_saved[name]), relied[name]) for name in read
    }
    return {**same, **again}


def _graph(models: Mapping[str, Model], loaded: Graph) -> Graph:
    """Build a graph of the loaded models' names, and of those that they still read."""
    read = with_upstreams(models, loaded.models)
    return stored_graph(read.values(), loaded.sources.values())


def _workspace_graph(
    environment: Environment,
    running: Mapping[str, Snapshot],
    pointers: Mapping[str, Pointer],
    loaded: Graph,
) -> Graph:
    """Build a graph of the loaded models' names, of a workspace's own, and of those that these read.

    An undo carries cells into the tables of its own models, whether they are still declared or not. One that
    reads what is not there any more can't be run, and is left out.
    """
    models = {name: snapshot.model for name, snapshot in running.items()}
    relied = {name: snapshot.sources for name, snapshot in running.items()}
    own = [name for name, at in pointers.items() if at.environment == environment.name]
    return _graph_of(models, loaded.models, own, loaded.sources, relied)


def _graph_of(
    models: Mapping[str, Model],
    names: Iterable[str],
    others: Iterable[str],
    sources: Mapping[str, Source],
    relied: Mapping[str, Relied],
) -> Graph:
    """Build a graph of some models and of what they read, whether it is still declared or not.

    Args:
        models: every one that is known.
        names: those that are in it.
        others: those that are in it as far as all that they read is known.
        sources: those that are declared.
        relied: by model, what its snapshot relies on of its sources.
    """
    known = models.keys() | with_relied_on(sources, relied.values()).keys()
    whole = [name for name in others if _read_by(with_upstreams(models, [name])) <= known]
    read = with_upstreams(models, [*names, *whole])
    of_these = with_relied_on(sources, (relied.get(name) for name in read))
    return stored_graph(read.values(), of_these.values())


def _read_by(models: Mapping[str, Model]) -> set[str]:
    return {upstream.name for model in models.values() for upstream in model.reads}


def _new(
    graph: Graph,
    pointers: Mapping[str, Pointer],
    snapshots: Mapping[str, Snapshot],
    changed: tuple[str, ...],
) -> tuple[Snapshot, ...]:
    """Take snapshots of new models on the graph that the environment runs.

    Over an upstream that still runs its old logic, or a source that is still read as it was declared
    before, a new model's table is another one.
    """
    names = [name for name in snapshots if name not in pointers]
    prints = fingerprints(graph) if names and changed else {}
    return tuple(
        Snapshot(snapshots[name].model, prints[name], source_readings(graph, graph.models[name]))
        if name in prints
        else snapshots[name]
        for name in names
    )


def _as_relied_on(
    graph: Graph,
    running: Mapping[str, Snapshot],
    environment: Environment,
    pointers: Mapping[str, Pointer],
) -> tuple[Graph, Misread]:
    own = {name for name, at in pointers.items() if at.environment == environment.name}
    return as_relied_on(graph, {name: snapshot.sources for name, snapshot in running.items()}, own)


def _first(environment: Environment, snapshot: Snapshot) -> Pointer:
    name, fingerprint = snapshot.model.name, snapshot.fingerprint.id
    return Pointer(environment.name, name, fingerprint, snapshot.version, -1)
