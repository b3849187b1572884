"""Fill every model of a selection, upstream before downstream, one model at a time.

A batch that fails blocks only the cells that read it: the next model is asked what its cells lack
after the one before it is done, so whatever can be filled is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.execution.range_run import run_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.execution.events import Event, Listener
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet


def run_graph(
    run: RunContext,
    targets: Mapping[str, IntervalSet],
    listener: Listener,
    *,
    batches_at_once: int,
) -> dict[str, tuple[Event, ...]]:
    """Fill what is missing of the named models.

    Args:
        run: what all batches share.
        targets: per model, the whole cells to fill where they are missing.
        listener: called from this thread only.
        batches_at_once: how many batches may be in flight, over all runs and processes.

    Returns:
        Per model, every event.
    """
    return {
        name: run_range(run, name, targets[name], listener, batches_at_once=batches_at_once)
        for name in run.graph.order
        if name in targets
    }
