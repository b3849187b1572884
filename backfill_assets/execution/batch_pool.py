"""Run a model's batches in threads, some side by side, and pass their events on in one place."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from backfill_assets.execution.at_work import Phase
from backfill_assets.execution.batch_run import run_batch
from backfill_assets.execution.cancelling import RunCancelledError
from backfill_assets.execution.events import Delayed, Failed, Skipped, Started, Waiting
from backfill_assets.execution.failures import kind_of, sentence
from backfill_assets.execution.requests import batch_request
from backfill_assets.execution.retrying import attempted
from backfill_assets.execution.watching import giving_up
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.batching import batches
from backfill_assets.warehouse.spark_errors import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from backfill_assets.execution.events import Event
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model

    _Begin = Callable[["Piece", Callable[[Event | Future[None]], None]], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive cells that shall become one batch, and why."""

    interval: Interval
    reason: str


def run_pieces(
    run: RunContext, model: Model, pieces: Sequence[Piece], at_once: int
) -> Iterator[Event]:
    """Run batches, `at_once` of them side by side; in order where a cell reads earlier ones.

    What ends a thread for good (an interrupt) is raised here, after the batches beside it ended; one
    that waits for its turn gives up. Ctrl-C lets those in flight come to their end, a second one, or
    another interrupt, cancels them. Where the plan is held, what has not begun waits with it.
    """
    waiting = list(reversed(pieces))
    events: SimpleQueue[Event | Future[None]] = SimpleQueue()
    running = 0
    with (
        run.at_work.at(Phase.BUILDING, model.name, of=len(pieces)) as step,
        _threads(run, model, at_once) as begin,
    ):
        while waiting or running:
            while waiting and running < at_once:
                step.next()
                begin(waiting.pop(), events.put)
                running += 1
            event = events.get()
            if isinstance(event, Future):
                running -= 1
                event.result()
                continue
            yield event
            behind = _holds_back(model, event)
            if behind and waiting:
                left = IntervalSet.of(piece.interval for piece in waiting)
                waiting.clear()
                yield Waiting(model.name, left, behind)


@contextmanager
def _threads(run: RunContext, model: Model, at_once: int) -> Iterator[_Begin]:
    """Lend threads, and wait for what runs in them; the impatient may interrupt that too."""
    begun: list[Future[None]] = []
    with ThreadPoolExecutor(at_once, thread_name_prefix=f"batch-{model.name}") as pool:

        def begin(piece: Piece, put: Callable[[Event | Future[None]], None]) -> None:
            future = pool.submit(_run_piece, run, model, piece, put)
            begun.append(future)
            future.add_done_callback(put)

        try:
            with giving_up(run):
                yield begin
        finally:
            _await(run, begun)


def _await(run: RunContext, begun: Sequence[Future[None]]) -> None:
    """Wait for batches in flight; one more interrupt cancels them.

    Not by joining their threads: one that was interrupted takes a thread for ended that still runs.
    """
    try:
        wait(begun)
    except BaseException:
        run.flights.cancel(RunCancelledError(run.run_id))
        wait(begun)
        raise


def _holds_back(model: Model, event: Event) -> str | None:
    """Say what the batches that have not begun wait for by now."""
    if isinstance(event, Waiting):
        return event.upstream
    return model.name if model.in_order and isinstance(event, Failed) else None


def _run_piece(run: RunContext, model: Model, piece: Piece, put: Callable[[Event], None]) -> None:
    """Run one batch in its thread; where others filled some of its cells, the rest once more."""
    todo = [piece.interval]
    while todo:
        one = replace(piece, interval=todo.pop())
        ending = attempted(run, partial(_attempt, run, model, one, put), put)
        put(ending)
        if isinstance(ending, Skipped):
            left = IntervalSet.of([one.interval]) - IntervalSet.of(ending.built_by)
            todo += batches(model.cadence, left)


def _attempt(run: RunContext, model: Model, piece: Piece, put: Callable[[Event], None]) -> Event:
    """Run one batch once, tell what happens meanwhile, and give how it ended."""
    try:
        request = batch_request(run, model, piece.interval, reason=piece.reason)
        for event in run_batch(run, request):
            if not isinstance(event, Started | Delayed):
                return event
            put(event)
    except Exception as error:  # noqa: BLE001 - a thread's error must reach the run
        found = explained(error, run.table(model))
        return Failed(model.name, "", piece.interval, sentence(found), kind=kind_of(found))
    raise AssertionError  # every batch ends
