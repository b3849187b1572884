"""Fill cells of one model: skip what is ready, cut the rest into batches, run them side by side.

This is what the Dagster asset, `dagster asset materialize` and the CLI all call.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.execution.batch_pool import Piece, run_pieces
from backfill_assets.execution.commit_turn import settle
from backfill_assets.execution.events import Failed, NeedsPlan, Skipped, Waiting
from backfill_assets.execution.failures import kind_of
from backfill_assets.execution.heartbeat import beating
from backfill_assets.execution.late_cells import late_work_of
from backfill_assets.execution.requests import REFRESH, RERUN
from backfill_assets.execution.retrying import patiently
from backfill_assets.execution.sources import Held, cells_held
from backfill_assets.execution.watching import giving_up, watching
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.batching import batches
from backfill_assets.planning.needs_work import Work, needs_work
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.slots import ALL, model_scope
from backfill_assets.warehouse.spark_errors import explained

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from backfill_assets.execution.events import Event, Listener
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.state_view import StateView


def run_range(
    run: RunContext, name: str, target: IntervalSet, listener: Listener, *, batches_at_once: int
) -> tuple[Event, ...]:
    """Fill the target's cells of one model and tell the listener of each thing that happens.

    Cells that are ready stay as they are. Stale ones are refreshed inside the late window of a model
    that nobody reads; others of a protected environment are reported, for rewriting published
    history takes a plan. A batch that fails leaves the others alone. An
    interrupt is raised after the batches in flight have ended.

    Args:
        run: what all batches share.
        name: the model.
        target: whole cells of it.
        listener: called from this thread only, in order.
        batches_at_once: how many batches may be in flight altogether, over all runs and processes,
            unless somebody has set another limit; the model's own is `batch_concurrency`.

    Returns:
        Every event, in order.
    """
    told: list[Event] = []
    model, run = run.graph.model(name), replace(run, overall=batches_at_once)
    # Closed before the heart stops beating: a batch in flight needs its claims to the end.
    with (
        beating(run.store, run.run_id),
        watching(run),
        closing(_filled(run, model, target)) as all_,
        giving_up(run),
    ):
        for event in all_:
            told.append(event)
            listener(event)
    return tuple(told)


def _filled(run: RunContext, model: Model, target: IntervalSet) -> Generator[Event]:
    owner = run.store.owner(run.pointer(model).version)
    if owner not in (None, run.environment.name):
        yield from _followed(run, model, target, owner)
        return
    if model.name not in run.store.pointers(run.environment.name):
        yield from _followed(run, model, target, "a plan")
        return
    try:
        patiently(run, lambda: settle(run, model))
    except BackfillAssetsError as error:
        kind = kind_of(error)
        yield from (Failed(model.name, "", one, str(error), kind=kind) for one in target)
        return
    view = run.view()
    reads = run.reads.get(model.name)
    work = needs_work(run.graph, view, model, now=run.until, reads=reads)
    again = _asked_again(run, model, work) & target
    refresh = (work.refresh & target) - again
    automatic = _automatic(run, model, work)
    yield from _at_rest(view, model, work, target - again - refresh, automatic)
    todo = (work.runnable & target) | again | refresh
    for event, cells in _held_up(run, model, work, todo):
        yield event
        todo -= cells
    reasons = {run.fills: todo - again - refresh, RERUN: todo & again, REFRESH: todo & refresh}
    yield from run_pieces(run, model, _pieces(model, reasons), at_once(run, model))


def at_once(run: RunContext, model: Model) -> int:
    """Say for how many batches of a model a run needs threads; each still waits for its slot."""
    if model.in_order:
        return 1
    known = run.store.limits()
    own = known.get(model_scope(model.name), model.batch_concurrency)
    return min(own, known.get(ALL, run.overall or own))


def _followed(run: RunContext, model: Model, target: IntervalSet, owner: str) -> Iterator[Event]:
    """Leave a table alone that another environment writes: what it lacks is for that one to fill."""
    view, reads = run.view(), run.reads.get(model.name)
    work = needs_work(run.graph, view, model, now=run.until, reads=reads)
    yield from _at_rest(view, model, replace(work, blocked={}), target, IntervalSet.empty())
    if gaps := work.gaps & target:
        yield Waiting(model.name, gaps, owner)


def _asked_again(run: RunContext, model: Model, work: Work) -> IntervalSet:
    """The published cells that a run by hand rebuilds, but for those that it built itself."""
    if not run.rebuilds:
        return IntervalSet.empty()
    built = run.store.built_by(run.pointer(model).version)
    own = IntervalSet.of(cell for cell, one in built.items() if one.root_id == run.root_id)
    return work.ready - own


def _held_up(
    run: RunContext, model: Model, work: Work, todo: IntervalSet
) -> Iterator[tuple[Event, IntervalSet]]:
    """Tell which cells can't be filled now, and why: a source's, or those behind such a gap."""
    published = _published(run, model)
    for held in _held(run, model, work, todo):
        if held.error is None:
            # What is published and has no rows any more becomes empty when it is built again.
            if waiting := (held.cells & todo) - published:
                yield Waiting(model.name, waiting, held.source), waiting
            todo -= waiting
            continue
        todo -= held.cells
        for interval in held.cells:
            kind = kind_of(held.error)
            yield Failed(model.name, "", interval, str(held.error), kind=kind), held.cells
    if model.in_order and (behind := _behind_a_gap(work, todo)):
        yield Waiting(model.name, behind, model.name), behind


def _held(run: RunContext, model: Model, work: Work, todo: IntervalSet) -> tuple[Held, ...]:
    """Look at the sources, for cells that are not recorded as empty: those need no rows of any."""
    wanted = todo if run.fills != EMPTY else work.refresh & todo
    try:
        return patiently(run, lambda: tuple(cells_held(run, model, wanted)))
    except Exception as error:
        found = explained(error)
        if not isinstance(found, BackfillAssetsError):
            raise
        return (Held("its sources", wanted, found),)


def _published(run: RunContext, model: Model) -> IntervalSet:
    """The cells that a workspace is about to replace."""
    follows = run.environment.follows
    if not run.environment.is_workspace or follows is None:
        return IntervalSet.empty()
    return run.store.view(follows).ready(model.name)


def _behind_a_gap(work: Work, todo: IntervalSet) -> IntervalSet:
    """The cells of a self-reading model that come after a gap which this run will not fill."""
    left = (work.gaps - todo).hull()
    ahead = todo.hull()
    if left is None or ahead is None or ahead.end <= left.start:
        return IntervalSet.empty()
    return todo & IntervalSet.of([Interval(left.start, ahead.end)])


def _pieces(model: Model, reasons: Mapping[str, IntervalSet]) -> list[Piece]:
    size = 1 if model.in_order else model.batch_size
    found = [
        Piece(interval, reason)
        for reason, cells in reasons.items()
        for interval in batches(model.cadence, cells, size)
    ]
    return sorted(found, key=lambda piece: piece.interval.start)


def _automatic(run: RunContext, model: Model, work: Work) -> IntervalSet:
    """The stale cells that late data's own plan builds again."""
    if not work.stale or run.environment.is_workspace:
        return IntervalSet.empty()
    return late_work_of(run).automatic.get(model.name, IntervalSet.empty())


def _at_rest(
    view: StateView, model: Model, work: Work, target: IntervalSet, automatic: IntervalSet
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
        for cells, itself in ((stale.cells - automatic, False), (stale.cells & automatic, True)):
            if cells & target:
                yield NeedsPlan(model.name, cells & target, stale.upstream, itself)
    for upstream, cells in work.blocked.items():
        if cells & target:
            yield Waiting(model.name, cells & target, upstream)
