"""Bring an environment and the loaded models together: each runs the snapshot it points at.

A model that the environment has never seen gets a pointer. One whose words changed keeps its table.
One whose logic changed goes on with the environment's own snapshot until a plan promotes the new
one; it is reported, never silently run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.models.graph import build_graph
from backfill_assets.models.lineage import lineage_of
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of, stored_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.state.store import Store


@dataclass(frozen=True, slots=True)
class EnvironmentGraph:
    """The models that an environment runs.

    Attributes:
        graph: its snapshots' models and the loaded sources.
        pointers: where it keeps each model.
        reads: per model, what it reads by column.
        changed: models whose loaded logic is not the environment's: a plan is owed.
    """

    graph: Graph
    pointers: Mapping[str, Pointer]
    reads: Mapping[str, Mapping[str, frozenset[str]]]
    changed: tuple[str, ...]


def environment_graph(
    store: Store, loaded: Graph, environment: Environment, *, data_root: str
) -> EnvironmentGraph:
    """Give every loaded model a pointer in the environment, and read back what it runs."""
    snapshots, known = snapshots_of(loaded), store.pointers(environment.name)
    pointers = {
        name: known[name]
        if name in known and not _words_changed(known[name], snapshots[name])
        else _settled(store, environment, snapshots[name], data_root)
        for name in loaded.order
    }
    changed = tuple(
        name for name, pointer in pointers.items() if pointer.version != snapshots[name].version
    )
    models = [
        stored_model(store.snapshot_definition(pointers[name].fingerprint))
        if name in changed
        else loaded.models[name]
        for name in loaded.order
    ]
    graph = build_graph(models, loaded.sources.values()) if changed else loaded
    reads = {model.name: lineage_of(graph, model).reads for model in models}
    return EnvironmentGraph(graph, pointers, reads, changed)


def _settled(store: Store, environment: Environment, snapshot: Snapshot, data_root: str) -> Pointer:
    """Point at a snapshot: the environment's first one of the model, or one of the same version."""
    model, fingerprint = snapshot.model, snapshot.fingerprint
    store.save_snapshot(
        fingerprint_id=fingerprint.id,
        model=model.name,
        version=snapshot.version,
        definition=snapshot.definition(),
        logic=fingerprint.logic,
        upstream=fingerprint.upstream,
        metadata=fingerprint.metadata,
    )
    wanted = Pointer(environment.name, model.name, fingerprint.id, snapshot.version, -1)
    found = store.ensure_pointer(wanted, table_path(data_root, snapshot))
    if not _words_changed(found, snapshot):
        return found
    store.repoint_metadata(environment.name, model.name, fingerprint.id)
    return replace(found, fingerprint=fingerprint.id)


def _words_changed(known: Pointer, snapshot: Snapshot) -> bool:
    """Whether only what is said about the model differs, so that its table stays."""
    same_table = known.version == snapshot.version
    return same_table and known.fingerprint != snapshot.fingerprint.id


def table_path(data_root: str, snapshot: Snapshot) -> str:
    """Where a version's table lies: ``<data>/tables/<subject>/<version>``."""
    subject = snapshot.model.name.partition(".")[0]
    return f"{data_root}/tables/{subject}/{snapshot.version}"
