"""Open a run: the state, the environment's own models, and Spark for when it is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backfill_assets.execution.environment_graph import environment_graph
from backfill_assets.execution.patience import PATIENT, Patience
from backfill_assets.execution.plan_terms import USUAL, PlanTerms
from backfill_assets.execution.run_context import Published, RunContext, table_path
from backfill_assets.models.source_reading import readings_text
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.state.versions import UnknownVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from backfill_assets.execution.environment_graph import EnvironmentGraph
    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.state.store import Store


def open_run(  # noqa: PLR0913 - the one place where all of it comes together
    store: Store,
    loaded: Graph,
    *,
    environment: str,
    spark: Callable[[], Any],
    data_root: str,
    clock: Callable[[], datetime],
    run_id: str,
    root_id: str | None = None,
    published: Published = Published.KEPT,
    plan_id: str | None = None,
    worked_out: Loaded | None = None,
    patience: Patience = PATIENT,
    terms: PlanTerms = USUAL,
) -> RunContext:
    """Bring the store, an environment and the loaded models together for one run.

    New models get their first pointers.

    Args:
        store: the state.
        loaded: the models and sources that this process has imported.
        environment: its name.
        spark: gives the session, started on first use.
        data_root: folder or URI under which tables lie.
        clock: gives the instant (UTC).
        run_id: of this run or process.
        root_id: of the root run or backfill; the run itself when it is none's re-execution.
        published: what to do with published cells that are asked for again; a protected
            environment keeps them whatever this says.
        plan_id: the plan that is served; None for a gap fill.
        worked_out: what is known of the loaded models already: their fingerprints and reads.
        patience: how often a batch is tried, and how long it may take.
        terms: of plans that the run makes by itself.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    known = store.environments.get(environment)
    own = environment_graph(store, loaded, known, worked_out.snapshots if worked_out else None)
    settled = {
        **{one.model.name: _pointed(store, known, one, data_root) for one in own.new},
        **{one.model.name: _reworded(store, own, one) for one in own.reworded},
    }
    return RunContext(
        store=store,
        spark=spark,
        environment=known,
        graph=own.graph,
        pointers={**own.pointers, **settled},
        reads=worked_out.reads if worked_out and own.graph is loaded else own.reads,
        data_root=data_root,
        clock=clock,
        until=clock(),
        run_id=run_id,
        root_id=root_id or run_id,
        plan_id=plan_id,
        changed=own.changed,
        misread=own.misread,
        published=published,
        patience=patience,
        terms=terms,
    )


def look(  # noqa: PLR0913 - as many as a run
    store: Store,
    loaded: Graph,
    *,
    environment: str,
    spark: Callable[[], Any],
    data_root: str,
    clock: Callable[[], datetime],
    run_id: str,
    snapshots: Mapping[str, Snapshot] | None = None,
    terms: PlanTerms = USUAL,
) -> RunContext:
    """Do the same for those who only look: nothing is written, not even a first pointer.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    known = store.environments.get(environment)
    own = environment_graph(store, loaded, known, snapshots)
    return RunContext(
        store=store,
        spark=spark,
        environment=known,
        graph=own.graph,
        pointers=own.pointers,
        reads=own.reads,
        data_root=data_root,
        clock=clock,
        until=clock(),
        run_id=run_id,
        root_id=run_id,
        changed=own.changed,
        misread=own.misread,
        terms=terms,
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
    """Give a model its first pointer in the environment; one that somebody else gave it stays.

    A model that an open plan is about to bring is left to that plan. So is one whose table others
    own, or that was taken back: what the table holds is no gap's business, a plan looks at it.
    """
    model, version = snapshot.model.name, snapshot.version
    for plan in store.environments.by_name():
        if plan.is_workspace and plan.follows == environment.name:
            brought = store.environments.own_pointers(plan.name).get(model)
            if brought is not None:
                return brought
    save_snapshot(store, snapshot)
    wanted = Pointer(environment.name, model, snapshot.fingerprint.id, version, -1)
    if _is_there(store, version, environment):
        return wanted
    return store.environments.ensure_pointer(wanted, table_path(data_root, model, version))


def _is_there(store: Store, version: str, environment: Environment) -> bool:
    """Whether a table holds what the environment does not publish."""
    try:
        owner, head = store.versions.owner(version), store.versions.known_head(version)
    except UnknownVersionError:
        return False
    return owner not in (None, environment.name) or (environment.protected and head >= 0)


def _reworded(store: Store, own: EnvironmentGraph, snapshot: Snapshot) -> Pointer:
    """Run new words over the same table."""
    pointer, fingerprint = own.pointers[snapshot.model.name], snapshot.fingerprint.id
    save_snapshot(store, snapshot)
    store.environments.repoint_metadata(pointer.environment, pointer.model, fingerprint)
    return replace(pointer, fingerprint=fingerprint)
