"""Open a run: the state, the environment's own models, and Spark for when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.execution.environment_graph import environment_graph
from backfill_assets.execution.run_context import Published, RunContext

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from backfill_assets.models.graph import Graph
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
) -> RunContext:
    """Bring the store, an environment and the loaded models together for one run.

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

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    known = store.environment(environment)
    own = environment_graph(store, loaded, known, data_root=data_root)
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
        root_id=root_id or run_id,
        changed=own.changed,
        published=published,
    )
