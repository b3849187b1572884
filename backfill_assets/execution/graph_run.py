"""Fill every model of a selection, upstream before downstream, one model at a time.

Every entrance ends here, also the one that fills one model. The sources are looked at first, for all
models together, so that these see the same rows of them.

A batch that fails blocks only the cells that read it: the next model is asked what its cells lack
after the one before it is done, so whatever can be filled is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.execution.events import Noted
from backfill_assets.execution.observing import observe
from backfill_assets.execution.range_run import run_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """Look at what the named models read of sources, then fill what is missing of them.

    Args:
        run: what all batches share.
        targets: per model, the whole cells to fill where they are missing.
        listener: called from this thread only.
        batches_at_once: how many batches may be in flight, over all runs and processes.

    Returns:
        Per model, every event of its cells.
    """
    names = [name for name in run.graph.order if name in targets]
    _look(run, names, listener)
    return {
        name: run_range(run, name, targets[name], listener, batches_at_once=batches_at_once)
        for name in names
    }


def _look(run: RunContext, names: Sequence[str], listener: Listener) -> None:
    readers = {up.name: name for name in reversed(names) for up in run.graph.model(name).reads}
    for looked in observe(run, names):
        if looked.note:
            listener(Noted(readers[looked.source], looked.source, looked.note))
