"""Events of many cells at once: reported like `context.log_event`, stored as one batch."""

from collections.abc import Sequence

import dagster as dg

from backfill_assets.orchestration.private_names import (
    DagsterEventBatchMetadata,
    append,
    generate_event_batch_id,
)


def log_events(
    context: dg.AssetExecutionContext,
    said: Sequence[dg.AssetMaterialization] | Sequence[dg.AssetObservation],
) -> None:
    """Report materializations, or observations, of a step; the storage gets them together."""
    batch, last = generate_event_batch_id(), len(said) - 1
    step = context.get_step_execution_context()
    for number, one in enumerate(said):
        where = DagsterEventBatchMetadata(batch, is_end=number == last)
        told = (
            dg.DagsterEvent.asset_materialization(step, one, where)
            if isinstance(one, dg.AssetMaterialization)
            else dg.DagsterEvent.asset_observation(step, one, where)
        )
        append(context, told)
