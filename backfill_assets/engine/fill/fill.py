"""Fill cells of models: which of them a run builds, which rest, and why.

Every entrance ends here, also the one that fills one model: the Dagster asset, `dagster asset
materialize`, a plan, the CLI. The sources are looked at first, for all models together, so that these
see the same rows of them. Then the schedule asks what each model needs, and runs its batches.

A batch that fails blocks only the cells that read it: whatever else can be filled is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.commit_turn import reconcile_table
from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.batch.requests import ADOPTED, REFRESH, RERUN
from backfill_assets.engine.batch.retrying import patiently
from backfill_assets.engine.batch.sources import WaitingCells, cells_held
from backfill_assets.engine.fill.late_cells import built_without_rows, late_waits, late_work_of
from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.fill.schedule import Needs, Piece, run_scheduled
from backfill_assets.engine.fill.unresolved_failures import keep_failed_start
from backfill_assets.engine.fill.watching import watching
from backfill_assets.engine.project.events import (
    OWN_CELLS,
    Committed,
    Failed,
    LeftStale,
    Skipped,
    SourceNote,
    Waiting,
    events_of,
)
from backfill_assets.engine.project.heartbeat import renewing_claims
from backfill_assets.engine.project.views import rewrite_views
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.restated import onward
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.cells import lacking_input
from backfill_assets.planning.plan.batch_size import joins_stretches
from backfill_assets.planning.plan.batching import batches, joined, unblocked
from backfill_assets.planning.rule.late_work import LateWork
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.environment import plan_of, undone_in
from backfill_assets.warehouse.spark.spark_errors import error_of_ours

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backfill_assets.engine.project.events import Event, Listener
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.batch_size import BatchSize
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView


def fill_cells(
    run: RunContext,
    targets: Mapping[str, IntervalSet],
    listener: Listener,
) -> dict[str, tuple[Event, ...]]:
    """Look at what the named models read of sources, then fill what is missing of them.

    Cells that are ready stay as they are. Stale ones are refreshed inside the late window of a model
    without readers, where no open plan builds them in the same table; others are reported, with what they wait for:
    rewriting published history takes a plan. A batch that fails leaves the others alone. An interrupt
    is raised after the batches in flight have ended.

    Args:
        run: what all batches share.
        targets: per model, the whole cells to fill where they are missing; one that has none is looked at
            and told of all the same.
        listener: called from this thread only, in order.

    Returns:
        Per model, every event of its cells, in order.
    """
    names = [name for name in run.graph.order if name in targets]
    _look(run, names, listener)
    view = run.view()
    models = [run.graph.model(name) for name in names]
    fillings = [
        Filling(run, model, targets[model.name], run.batch_size(model, view)) for model in models
    ]
    events_by_model: dict[str, list[Event]] = {name: [] for name in names}

    def heard(event: Event) -> None:
        events_by_model[event.model].append(event)
        keep_failed_start(run, event)
        listener(event)

    try:
        # A batch in flight needs its claims to the end.
        with renewing_claims(run.store, run.run_id, run.tell_untold), watching(run):
            run_scheduled(run, fillings, heard)
    finally:
        if events_of(Committed, events_by_model):
            rewrite_views(run, run.environment.name)
    return {name: tuple(events) for name, events in events_by_model.items()}


def _look(run: RunContext, names: Sequence[str], listener: Listener) -> None:
    readers = {up.name: name for name in reversed(names) for up in run.graph.model(name).reads}
    for looked in observe(run, names):
        if looked.note:
            listener(SourceNote(readers[looked.source], looked.note))


@dataclass
class Filling:
    """What a run has to do in cells of one model.

    Attributes:
        run: what all batches share.
        model: whose cells they are.
        target: whole cells to fill where they are missing.
        size: how many cells go in one batch, by what is recorded so far.
    """

    run: RunContext
    model: Model
    target: IntervalSet
    size: BatchSize

    def needs(self, undecided: IntervalSet, taken: IntervalSet) -> Needs:
        """Say which batches may begin now, and once everything is decided, why other cells rest.

        A batch begins with all of its cells, so those beside an undecided one wait for it.

        Args:
            undecided: cells of the target that read what a batch of this run may still change.
            taken: cells that batches of this run were begun for, or that rest for good. Of a model
                that reads its own cells all these batches have ended.
        """
        if undecided and not self.target - taken - undecided:
            return Needs(later=undecided, more=self._count(undecided))
        if self._leader is not None:
            if undecided:
                return Needs(later=undecided)
            followed = _followed(self.run, self.model, self.target, self._leader)
            return Needs(events=tuple(followed))
        if self._in_the_way is not None:
            error, kind = self._in_the_way, kind_of(self._in_the_way)
            cells = self.target - taken
            failed = (
                Failed(self.model.name, "", IntervalSet.of([cell]), str(error), kind=kind)
                for cell in cells
            )
            return Needs(events=tuple(failed), rest=cells)
        return self._decided(undecided, taken)

    def _decided(self, undecided: IntervalSet, taken: IntervalSet) -> Needs:
        run, model = self.run, self.model
        view = run.view()
        self.size = run.batch_size(model, view)
        work = run.work(model.name, view)
        again = _asked_again(run, model, work) & self.target
        is_asked = bool(work.refresh or (work.stale and not undecided))
        late = _late_work(run, view) if is_asked else LateWork()
        in_place = work.refresh if run.environment.is_workspace else late.in_place[model.name]
        refresh = (in_place & self.target) - again
        todo = ((work.runnable & self.target) | again | refresh) - taken - undecided
        events: list[Event] = []
        blocked_cells = IntervalSet.empty()
        for event, cells in _held_up(run, model, work, todo, undecided):
            events.append(event)
            blocked_cells |= cells
        todo -= blocked_cells
        now = self._whole_batches(todo, undecided)
        behind = self._behind(now) - taken - blocked_cells
        now -= behind
        reasons = {run.fills: now - again - refresh, RERUN: now & again, REFRESH: now & refresh}
        later = undecided | (todo - now) | behind
        reported_cells = blocked_cells
        if not undecided:
            rest = self.target - again - refresh - taken - behind
            events = [*_at_rest(run, view, model, work, rest, late), *events]
            reported_cells |= rest - now
        pieces = self._pieces(reasons, view)
        return Needs(pieces, later, self._count(later), reported_cells, tuple(events))

    def _behind(self, now: IntervalSet) -> IntervalSet:
        """Give the cells after the first stretch that is built, of a model that reads its own cells.

        Once these have ended, they may need work, too, or again.
        """
        if not self.model.in_order or not now:
            return IntervalSet.empty()
        first = next(iter(now))
        return onward(now, self.target) - IntervalSet.of([first])

    def _cut(self, cells: IntervalSet) -> tuple[Interval, ...]:
        return batches(self.model.cadence, cells, self.size.cells)

    def _count(self, cells: IntervalSet) -> int:
        return len(self._cut(cells))

    def _pieces(self, reasons: Mapping[str, IntervalSet], view: StateView) -> tuple[Piece, ...]:
        name = self.model.name
        claimed, state = view.claimed[name], view.models.get(name)
        seen = None if state is None else state.pointer.delta_version
        pieces = [
            Piece(stretches, reason, seen)
            for reason, cells in reasons.items()
            for stretches in self._joined(cells, claimed)
        ]
        return tuple(sorted(pieces, key=lambda piece: piece.stretches.boundaries))

    def _joined(self, cells: IntervalSet, claimed: IntervalSet) -> tuple[IntervalSet, ...]:
        """Cut cells into batches; what others are at work on is waited for by itself.

        What adopting would read between stretches is not known.
        """
        model, size = self.model, self.size
        joins = joins_stretches(model) and self.run.fills != ADOPTED
        a_cell = size.bytes_per_cell if joins else 0
        return joined(model.cadence, cells, size.cells, a_cell, claimed)

    def _whole_batches(self, todo: IntervalSet, undecided: IntervalSet) -> IntervalSet:
        """Give the cells of batches whose cells are all decided.

        Of a model that reads its own cells, only those before the first batch that is not.
        """
        if not undecided:
            return todo
        cut = self._cut(todo | undecided)
        return todo & IntervalSet.of(unblocked(cut, undecided, in_order=self.model.in_order))

    @cached_property
    def _leader(self) -> str | None:
        """What fills the model's table in place of this run, in words; None where nothing does."""
        store, environment = self.run.store, self.run.environment.name
        owner = store.versions.owner(self.run.pointer(self.model).version)
        if owner not in (None, environment):
            plan_id = undone_in(owner) or plan_of(owner)
            writer = f"plan {plan_id}" if plan_id else f"environment {owner}"
            return f"{writer}, which writes its table"
        if self.model.name in store.environments.pointers(environment):
            return None
        return "a plan: only a plan can add it"

    @cached_property
    def _in_the_way(self) -> BackfillAssetsError | None:
        """Account for what others have left in the model's table, once; say what is in the way."""
        try:
            patiently(
                self.run.project.batch_policy,
                lambda: reconcile_table(self.run, self.model),
                self.run.interrupted,
            )
        except BackfillAssetsError as error:
            return error
        return None


def _followed(run: RunContext, model: Model, target: IntervalSet, leader: str) -> Iterator[Event]:
    """Leave a table alone that another environment writes: what it lacks is for that one to fill."""
    view = run.view()
    work = run.work(model.name, view)
    late = _late_work(run, view) if work.stale else LateWork()
    yield from _at_rest(run, view, model, replace(work, blocked={}), target, late)
    if gaps := work.gaps & target:
        yield Waiting(model.name, gaps, leader)


def _late_work(run: RunContext, view: StateView) -> LateWork:
    """Split the stale cells of an environment; in a workspace its plan builds them all."""
    return LateWork() if run.environment.is_workspace else late_work_of(run, view=view)


def _asked_again(run: RunContext, model: Model, work: Work) -> IntervalSet:
    """The published cells that a run by hand rebuilds, but for those that it built itself."""
    if not run.rebuilds:
        return IntervalSet.empty()
    version = run.pointer(model).version
    return work.ready - run.store.versions.built_by(version, run.root_id)


def _held_up(
    run: RunContext, model: Model, work: Work, todo: IntervalSet, undecided: IntervalSet
) -> Iterator[tuple[Event, IntervalSet]]:
    """Tell which cells can't be filled now, and why: a source's, or those behind such a gap.

    Args:
        run: what all batches share.
        model: whose cells they are.
        work: what it needs.
        todo: the cells to fill now.
        undecided: those that are asked about again later.
    """
    for source_wait in _held(run, model, work, todo):
        if source_wait.error is None:
            waiting = source_wait.cells & todo
            if run.graph.sources[source_wait.source].observed or run.environment.is_workspace:
                waiting -= built_without_rows(run, model.name, work)
            if waiting:
                yield Waiting(model.name, waiting, source_wait.source), waiting
            todo -= waiting
            continue
        todo -= source_wait.cells
        for interval in source_wait.cells:
            cells, kind = IntervalSet.of([interval]), kind_of(source_wait.error)
            yield (
                Failed(model.name, "", cells, str(source_wait.error), kind=kind),
                source_wait.cells,
            )
    if model.in_order and (behind := _behind_a_gap(work.gaps - undecided, todo)):
        yield Waiting(model.name, behind, OWN_CELLS), behind


def _held(run: RunContext, model: Model, work: Work, todo: IntervalSet) -> tuple[WaitingCells, ...]:
    """Look at the sources, for cells that are not recorded as empty: those need no rows of any."""
    cells = todo if run.fills != EMPTY else work.refresh & todo
    try:
        return patiently(
            run.project.batch_policy,
            lambda: tuple(cells_held(run, model, cells)),
            run.interrupted,
        )
    except Exception as error:
        cause = error_of_ours(error)
        if not isinstance(cause, BackfillAssetsError):
            raise
        return (WaitingCells("its sources", cells, cause),)


def _behind_a_gap(gaps: IntervalSet, todo: IntervalSet) -> IntervalSet:
    """The cells of a self-reading model that come after a gap which this run will not fill."""
    gap = (gaps - todo).hull()
    ahead = todo.hull()
    if gap is None or ahead is None or ahead.end <= gap.start:
        return IntervalSet.empty()
    return todo & IntervalSet.of([Interval(gap.start, ahead.end)])


def _left_stale(
    run: RunContext, model: Model, work: Work, target: IntervalSet, late: LateWork
) -> Iterator[Event]:
    """Tell of stale cells that no batch will touch, by what builds them again."""
    if not work.stale_cells & target:
        return
    ends = {"the refresh of late data builds them again": late.automatic[model.name]}
    ends |= {f"they {words}": cells for words, cells in late_waits(run, late, model.name).items()}
    ends[""] = work.stale_cells - IntervalSet.union_all(ends.values())
    for stale in work.stale:
        for until, cells in ends.items():
            if left := stale.cells & cells & target:
                yield LeftStale(model.name, left, stale.upstream, until)


def _at_rest(
    run: RunContext,
    view: StateView,
    model: Model,
    work: Work,
    target: IntervalSet,
    late: LateWork,
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
    yield from _left_stale(run, model, work, target, late)
    for upstream, cells in work.blocked.items():
        if cells & target:
            missing = _missing(run, view, model, upstream, cells & target)
            yield Waiting(model.name, cells & target, missing)


def _missing(
    run: RunContext, view: StateView, model: Model, upstream: str, cells: IntervalSet
) -> str:
    """Name the missing cells of an upstream model that some cells of a reader read."""
    theirs, ready = run.graph.model(upstream).cadence, view.ready(upstream)
    missing = IntervalSet.union_all(
        lacking_input(model.cadence, reading, theirs, cells, ready, until=run.until)
        for reading in model.reads
        if reading.name == upstream
    )
    return f"{upstream} {ranges_text(theirs, missing)}"
