"""Fill cells of one model: skip what is ready, cut the rest into batches, run them side by side.

This is what the Dagster asset, `dagster asset materialize` and the CLI all call.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING

from backfill_assets.execution.batch_run import run_batch
from backfill_assets.execution.events import Failed, NeedsPlan, Skipped, Waiting
from backfill_assets.execution.heartbeat import beating
from backfill_assets.execution.requests import batch_request
from backfill_assets.execution.sources import cells_without_rows
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.batching import batches
from backfill_assets.planning.needs_work import Work, needs_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.execution.events import Event, Listener
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.state_view import StateView


def run_range(
    run: RunContext, name: str, target: IntervalSet, listener: Listener, *, batches_at_once: int
) -> tuple[Event, ...]:
    """Fill the target's cells of one model and tell the listener of each thing that happens.

    Cells that are ready stay as they are; stale ones of a protected environment are reported, for
    rewriting published history takes a plan. A batch that fails leaves the others alone.

    Args:
        run: what all batches share.
        name: the model.
        target: whole cells of it.
        listener: called from this thread only, in order.
        batches_at_once: the limit of the process, over the model's own `batch_concurrency`.

    Returns:
        Every event, in order.
    """
    model = run.graph.model(name)
    told: list[Event] = []

    def tell(event: Event) -> None:
        told.append(event)
        listener(event)

    view = run.view()
    work = needs_work(run.graph, view, model, now=run.clock(), reads=run.reads.get(name))
    for event in _at_rest(run, view, model, work, target):
        tell(event)
    waiting = cells_without_rows(run, model, work.runnable & target)
    for upstream, cells in waiting.items():
        tell(Waiting(name, cells, upstream))
    todo = (work.runnable & target) - IntervalSet.union_all(waiting.values())
    if model.in_order and (behind := _behind_a_gap(model, work, todo)):
        tell(Waiting(name, behind, name))
        todo -= behind
    at_once = 1 if model.in_order else min(model.batch_concurrency, batches_at_once)
    size = 1 if model.in_order else model.batch_size
    with beating(run.store, run.run_id):
        for event in _run_all(run, model, batches(model.cadence, todo, size), at_once):
            tell(event)
    return tuple(told)


def _behind_a_gap(model: Model, work: Work, todo: IntervalSet) -> IntervalSet:
    """The cells of a self-reading model that come after a gap which this run will not fill."""
    left = (work.gaps - todo).hull()
    ahead = todo.hull()
    if left is None or ahead is None or ahead.end <= left.start:
        return IntervalSet.empty()
    return todo & IntervalSet.of([Interval(left.start, ahead.end)])


def _at_rest(
    run: RunContext, view: StateView, model: Model, work: Work, target: IntervalSet
) -> Iterator[Event]:
    """Tell of the target's cells that no batch will touch, and why."""
    fresh = (work.ready & target) - work.stale_cells
    state = view.models.get(model.name)
    built_by = {
        cell: ready.batch_id
        for ready in (state.runs if state else ())
        for cell in model.cadence.cells(fresh & IntervalSet.of([ready.interval]))
    }
    if built_by:
        yield Skipped(model.name, built_by)
    for stale in work.stale:
        if stale.cells & target:
            yield NeedsPlan(model.name, stale.cells & target, stale.upstream)
    for upstream, cells in work.blocked.items():
        if cells & target:
            yield Waiting(model.name, cells & target, upstream)


def _run_all(
    run: RunContext, model: Model, intervals: tuple[Interval, ...], at_once: int
) -> Iterator[Event]:
    """Run batches, `at_once` of them side by side; in order where a cell reads earlier ones."""
    waiting = list(reversed(intervals))
    events: SimpleQueue[Event | None] = SimpleQueue()
    running = 0
    with ThreadPoolExecutor(at_once, thread_name_prefix=f"batch-{model.name}") as pool:
        while waiting or running:
            while waiting and running < at_once:
                pool.submit(_run_one, run, model, waiting.pop(), events.put)
                running += 1
            event = events.get()
            if event is None:
                running -= 1
                continue
            yield event
            if model.in_order and isinstance(event, Failed):
                waiting.clear()


def _run_one(
    run: RunContext, model: Model, interval: Interval, put: Callable[[Event | None], None]
) -> None:
    """Run one batch in its thread and pass its events on; None tells that it has ended."""
    try:
        for event in run_batch(run, batch_request(run, model, interval)):
            put(event)
    except Exception as error:  # noqa: BLE001 - a thread's error must reach the run, as a failure
        put(Failed(model.name, "", interval, f"{type(error).__name__}: {error}"))
    finally:
        put(None)
