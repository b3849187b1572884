"""Run batches of many models in threads, each when what it reads is ready.

One scheduler over the graph: no model waits for the whole of another. What each model needs is asked of
`fill`, the batches themselves are `batch_run`'s.
"""

from __future__ import annotations

import sys
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from backfill_assets.engine.batch.batch_run import run_batch
from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.batch.retrying import attempted
from backfill_assets.engine.fill.watching import giving_up
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.cancelling import RunCancelledError
from backfill_assets.engine.project.events import (
    OWN_CELLS,
    Delayed,
    Failed,
    Skipped,
    Started,
    TryingAgain,
    Waiting,
)
from backfill_assets.errors import one_line
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.restated import onward
from backfill_assets.models.audits_of import looked_up
from backfill_assets.models.cells import cells_reading
from backfill_assets.planning.plan.batching import batches
from backfill_assets.snapshots.failure import ONE_S_OWN
from backfill_assets.snapshots.slots import ALL, model_scope
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.warehouse.spark.spark_errors import error_of_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from backfill_assets.engine.project.at_work import Telling
    from backfill_assets.engine.project.events import Event, Listener
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream

    _Events = SimpleQueue["tuple[_Lane, Event | _Ended]"]
    _Begin = Callable[["_Lane", "Piece", _Events], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """Cells that shall become one batch, why, and at which pin of the model's table that was decided."""

    stretches: IntervalSet
    reason: str
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model needs by now.

    Attributes:
        pieces: the batches that may begin, in order.
        later: cells that can be decided, or batched, only when batches upstream have ended.
        more: how many batches these may become.
        rest: cells that no batch of this run will be begun for, whatever comes.
        events: what there is to tell of cells that rest.
    """

    pieces: tuple[Piece, ...] = ()
    later: IntervalSet = field(default_factory=IntervalSet.empty)
    more: int = 0
    rest: IntervalSet = field(default_factory=IntervalSet.empty)
    events: tuple[Event, ...] = ()


class ModelToFill(Protocol):
    """What the scheduler knows of `fill.Filling`, which is made of what stands here."""

    @property
    def model(self) -> Model:
        """The model."""
        ...

    @property
    def target(self) -> IntervalSet:
        """Whole cells of it to fill where they are missing."""
        ...

    def needs(self, undecided: IntervalSet, taken: IntervalSet) -> Needs:
        """Say what the model needs; see `fill.Filling.needs`."""
        ...


def run_scheduled(run: RunContext, asked: Sequence[ModelToFill], listener: Listener) -> None:
    """Run batches of models, each when the cells that it reads are ready, and tell what happens.

    Whenever a batch has ended, the limits are read again, so one that is changed meanwhile counts.
    Models upstream have the first turn, and models that read their own cells the very first: each of
    their batches waits for the one before. A model is looked at when a thread has nothing else to do,
    and again when batches upstream of it have ended.

    What ends a thread for good (an interrupt) is raised here, after the batches beside it ended; one
    that waits for its turn gives up. Ctrl-C lets those in flight come to their end, a second one, or
    another interrupt, cancels them; how each of them ended is told all the same, for one that was in its
    commit turn is published. Where the plan is held, what has not begun waits with it.

    Args:
        run: what all batches share; its project's `batches_at_once` counts where no limit of all is set.
        asked: the models, upstream before downstream.
        listener: called from this thread only, in order.
    """
    events: _Events = SimpleQueue()
    try:
        _run_lanes(run, _lanes(asked), events, listener)
    finally:
        while not events.empty():
            _, event = events.get()
            if not isinstance(event, _Ended):
                listener(event)


def _run_lanes(
    run: RunContext, lanes: Sequence[_Lane], events: _Events, listener: Listener
) -> None:
    limits = run.store.limits.by_scope()
    with _told(run, lanes) as tell, _threads(run) as begin:
        while True:
            most = limits.get(ALL, run.project.batches_at_once)
            for lane, piece in _next(lanes, most, limits, listener):
                tell()
                begin(lane, piece, events)
            if not _flying(lanes):
                return
            _hear_until_one_ended(events, listener)
            if _flying(lanes):
                tell()
            limits = _limits_now(run, limits)


def _next(
    lanes: Sequence[_Lane], most: int, limits: Mapping[str, int], listener: Listener
) -> Iterator[tuple[_Lane, Piece]]:
    """Look at each model that has a turn, and take its batches that may begin now."""
    looked: set[_Lane] = set()
    for lane in lanes:
        if _flying(lanes) >= most:
            return
        for event in lane.looked(looked):
            listener(event)
        for piece in lane.next(most - _flying(lanes), limits):
            yield lane, piece


def _hear_until_one_ended(events: _Events, listener: Listener) -> None:
    lane, event = events.get()
    while not isinstance(event, _Ended):
        listener(event)
        for further in lane.heed(event):
            listener(further)
        lane, event = events.get()
    lane.flying.remove(event.piece)
    event.future.result()


@dataclass(eq=False)
class _Lane:
    """A model in the schedule: its batches that wait, those in flight, and what comes later."""

    asked: ModelToFill
    upstream: tuple[tuple[Upstream, _Lane], ...]
    waiting: deque[Piece] = field(default_factory=deque["Piece"])
    flying: list[Piece] = field(default_factory=list["Piece"])
    found: Needs = field(default_factory=Needs)
    taken: IntervalSet = field(default_factory=IntervalSet.empty)
    begun: int = 0
    undecided: IntervalSet | None = None
    behind: str | None = None

    @property
    def model(self) -> Model:
        return self.asked.model

    @property
    def unsettled(self) -> IntervalSet:
        """The cells that batches of this run may still change."""
        return self.found.later | _cells((*self.waiting, *self.flying))

    @property
    def known(self) -> int:
        """How many batches there are, as far as that is known."""
        return self.begun + len(self.waiting) + self.found.more

    def looked(self, before: set[_Lane]) -> Iterator[Event]:
        """Ask what the model needs, if that may be another answer than before.

        Args:
            before: the models that were looked at in this turn; upstream comes first.
        """
        if self in before:
            return
        before.add(self)
        for _, lane in self.upstream:
            yield from lane.looked(before)
        while self._may_need_more():
            self.undecided = self._undecided()
            self.found = self.asked.needs(self.undecided, self.taken)
            self.waiting = deque(self.found.pieces)
            self.taken |= self.found.rest
            yield from self.found.events
            if self.behind is not None:
                yield from self._held()

    def _may_need_more(self) -> bool:
        """Whether batches upstream have ended since it was asked, or its own, which it reads."""
        if self.undecided is None:
            return True
        if self.model.in_order and self.flying:
            return False
        if self.undecided and self._undecided() != self.undecided:
            return True
        return self.model.in_order and not self.waiting and bool(self.found.later - self.undecided)

    def _undecided(self) -> IntervalSet:
        """Give the cells that read what batches of upstreams may still change, also through its own cells."""
        read = IntervalSet.union_all(self._reading(up, lane) for up, lane in self.upstream)
        cells = (read & self.asked.target) - self.taken
        return onward(cells, self.asked.target) - self.taken if self.model.in_order else cells

    def _reading(self, upstream: Upstream, lane: _Lane) -> IntervalSet:
        """Give the cells that read what batches of an upstream may still change.

        Where rows of the upstream may move to other cells, or an audit looks them up in all of it, these
        are all.
        """
        unsettled = lane.unsettled
        if unsettled and (lane.model.moves_rows or upstream.name in looked_up(self.model)):
            return self.asked.target
        return cells_reading(self.model.cadence, upstream, lane.model.cadence, unsettled)

    def next(self, free: int, limits: Mapping[str, int]) -> Iterator[Piece]:
        """Take batches that may begin now.

        Args:
            free: how many more batches may be in flight, of whichever models.
            limits: the limits that are set, by scope.
        """
        at_once = limits.get(model_scope(self.model.name), self.model.batch_concurrency)
        own = (1 if self.model.in_order else at_once) - len(self.flying)
        for _ in range(min(free, own, len(self.waiting))):
            piece = self.waiting.popleft()
            self.flying.append(piece)
            self.taken |= _cells([piece])
            self.begun += 1
            yield piece

    def heed(self, event: Event) -> Iterator[Event]:
        """Let batches that have not begun wait, if one that did can't be."""
        if isinstance(event, Waiting):
            self.behind = event.waits_for
        elif self.model.in_order and isinstance(event, Failed):
            self.behind = OWN_CELLS
        else:
            return
        yield from self._held()

    def _held(self) -> Iterator[Event]:
        waiting_cells = _cells(self.waiting)
        self.waiting.clear()
        self.taken |= waiting_cells
        if waiting_cells and self.behind is not None:
            yield Waiting(self.model.name, waiting_cells, self.behind)


@dataclass(frozen=True, slots=True, eq=False)
class _Ended:
    """A thread is free again."""

    piece: Piece
    future: Future[None]


def _lanes(models: Sequence[ModelToFill]) -> list[_Lane]:
    """Give each model its lane, in the order of their turns."""
    lanes: dict[str, _Lane] = {}
    for filling in models:
        model = filling.model
        read = tuple((up, lanes[up.name]) for up in model.reads if up.name in lanes)
        lanes[model.name] = _Lane(filling, read)
    return sorted(lanes.values(), key=lambda lane: not lane.model.in_order)


def _limits_now(run: RunContext, before: dict[str, int]) -> dict[str, int]:
    """Read the limits that are set; while the state is away, those of before count."""
    try:
        return run.store.limits.by_scope()
    except (StateBusyError, StateUnavailableError):
        return before


def _flying(lanes: Sequence[_Lane]) -> int:
    return sum(len(lane.flying) for lane in lanes)


def _cells(pieces: Iterable[Piece]) -> IntervalSet:
    return IntervalSet.union_all(piece.stretches for piece in pieces)


@contextmanager
def _told(run: RunContext, lanes: Sequence[_Lane]) -> Iterator[Callable[[], None]]:
    """Lend a function that tells how many batches have begun, and of which models some are at work."""
    with ExitStack() as stack:
        step: Telling | None = None

        def tell() -> None:
            nonlocal step
            if step is None:
                step = stack.enter_context(run.at_work.at(Phase.BUILDING, of=1))
            names = ", ".join(sorted(lane.model.name for lane in lanes if lane.flying))
            step.tell(names, sum(lane.begun for lane in lanes), sum(lane.known for lane in lanes))

        yield tell


@contextmanager
def _threads(run: RunContext) -> Iterator[_Begin]:
    """Lend a thread for each batch in flight, and wait for these; see `_await`."""
    begun: list[Future[None]] = []
    with ThreadPoolExecutor(sys.maxsize, thread_name_prefix="batch") as pool:

        def begin(lane: _Lane, piece: Piece, events: _Events) -> None:
            def put(event: Event) -> None:
                events.put((lane, event))

            future = pool.submit(_run_piece, run, lane.model, piece, put)
            begun.append(future)
            future.add_done_callback(lambda done: events.put((lane, _Ended(piece, done))))

        try:
            with giving_up(run):
                yield begin
        finally:
            _await(run, begun)


def _await(run: RunContext, begun: Sequence[Future[None]]) -> None:
    """Wait for batches in flight; one more interrupt cancels them.

    It waits for the futures: an interrupted `Thread.join` takes a thread for ended that still runs.
    """
    try:
        wait(begun)
    except BaseException:
        run.flights.cancel(RunCancelledError(run.run_id))
        wait(begun)
        raise


def _run_piece(run: RunContext, model: Model, piece: Piece, put: Callable[[Event], None]) -> None:
    """Run one batch in its thread; where others filled some of its cells, the rest once more.

    Where one of several stretches may have failed a batch, each is tried by itself. Once the run is
    interrupted, nothing more begins.
    """
    todo = [piece.stretches]
    while todo:
        part = replace(piece, stretches=todo.pop())
        ending = attempted(run, partial(_attempt, run, model, part, put), put)
        if run.interrupted.is_set():
            put(ending)
            return
        if isinstance(ending, Failed) and len(part.stretches) > 1 and ending.kind in ONE_S_OWN:
            put(TryingAgain(model.name, part.stretches, 2, 2, 0.0, ending.error))
            todo += [IntervalSet.of([each]) for each in part.stretches]
            continue
        put(ending)
        if isinstance(ending, Skipped):
            remaining = part.stretches - IntervalSet.of(ending.built_by)
            todo += [IntervalSet.of([each]) for each in batches(model.cadence, remaining)]


def _attempt(run: RunContext, model: Model, piece: Piece, put: Callable[[Event], None]) -> Event:
    """Run one batch once, tell what happens meanwhile, and give how it ended."""
    try:
        request = batch_request(run, model, piece.stretches, reason=piece.reason, seen=piece.seen)
        for event in run_batch(run, request):
            if not isinstance(event, Started | Delayed):
                return event
            put(event)
    except Exception as error:  # noqa: BLE001 - a thread's error must reach the run
        cause = error_of_ours(error, run.table(model))
        return Failed(model.name, "", piece.stretches, one_line(cause), kind=kind_of(cause))
    raise AssertionError  # every batch ends
