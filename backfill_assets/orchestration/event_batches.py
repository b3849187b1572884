"""Events of many cells at once: reported like `context.log_event`, stored as one batch."""

from collections.abc import Sequence

import dagster as dg
from dagster._core.events import (
    DagsterEvent,
    DagsterEventBatchMetadata,
    generate_event_batch_id,
)


def log_events(
    context: dg.AssetExecutionContext,
    said: Sequence[dg.AssetMaterialization] | Sequence[dg.AssetObservation],
) -> None:
    """Report materializations, or observations, of a step; the storage gets them together."""
    batch, last = generate_event_batch_id(), len(said) - 1
    step, log = context.get_step_execution_context(), context.op_execution_context
    for number, one in enumerate(said):
        where = DagsterEventBatchMetadata(batch, is_end=number == last)
        told = (
            DagsterEvent.asset_materialization(step, one, where)
            if isinstance(one, dg.AssetMaterialization)
            else DagsterEvent.asset_observation(step, one, where)
        )
        log._events.append(told)  # noqa: SLF001 - as `log_event` does, which knows no batches
