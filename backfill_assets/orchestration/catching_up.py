"""Tell Dagster's event log what is ready, for cells that were filled without Dagster running."""

from collections.abc import Callable

import dagster as dg

from backfill_assets.execution.run_context import RunContext
from backfill_assets.orchestration.metadata import asset_key
from backfill_assets.orchestration.partitions import key_of


def report_ready(
    instance: dg.DagsterInstance,
    run: RunContext,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Report every ready cell that Dagster has no materialization of, so that its UI agrees.

    Args:
        instance: whose event log is told.
        run: the environment; only read.
        progress: told the model, how many of its cells are reported and how many there are.

    Returns:
        How many cells were reported.
    """
    return sum(_report_model(instance, run, name, progress) for name in run.graph.order)


def _report_model(
    instance: dg.DagsterInstance,
    run: RunContext,
    name: str,
    progress: Callable[[str, int, int], None] | None,
) -> int:
    model, state = run.graph.model(name), run.view().models.get(name)
    if state is None or not state.ready:
        return 0
    known = _known(instance, asset_key(name))
    contents = run.store.content_at_pin(run.environment.name, name, state.ready)
    builders = run.store.built_by(state.pointer.version, state.pointer.delta_version)
    lacking = [
        cell for cell in sorted(contents) if (key_of(model.cadence, cell) or "") not in known
    ]
    for done, cell in enumerate(lacking, start=1):
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key(name),
                partition=key_of(model.cadence, cell),
                metadata={
                    "dagster/partition_row_count": contents[cell].rows,
                    "batch": builders[cell].batch_id,
                    "delta_version": state.pointer.delta_version,
                },
            )
        )
        if progress is not None:
            progress(name, done, len(lacking))
    return len(lacking)


def _known(instance: dg.DagsterInstance, key: dg.AssetKey) -> set[str]:
    """The partitions that Dagster has seen; the empty name stands for an unpartitioned asset."""
    seen = set(instance.get_materialized_partitions(key))
    return seen | ({""} if instance.get_latest_materialization_event(key) else set())
