"""Find the cells whose batch failed, and until when each is not asked for again.

After a failure of the code or the input, the cells are asked for again once one of the two has changed.
After a transient failure they are asked for again by themselves: at growing intervals, at last once an
hour, for as long as it takes, so an outage over a weekend needs no person. After a timeout this happens
only a few times, since a batch that takes too long is computed in full each time.

Of a batch of several stretches, one may have failed all. Their run tries each by itself, and that has the last
word; where it has ended before, they are asked for again by themselves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.durations import doubled
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Reconciles, References
from backfill_assets.models.cells import cells_reading
from backfill_assets.snapshots.failure import FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.failure import FailedBatch
    from backfill_assets.snapshots.state_view import ReadyRun, StateView

TRIES = 8
"""How often what takes too long comes again, over some four hours."""
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=2), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Rest:
    """The failure that the first cells to be retried wait for.

    Attributes:
        until: when they are retried.
        batch_id: the batch that failed; its error says why.
    """

    until: datetime
    batch_id: str


@dataclass(frozen=True, slots=True)
class FailedCells:
    """Cells that are not asked for now.

    Attributes:
        for_good: until the code or the input changes.
        for_now: until some time has passed.
        rest: until when, and why; None where none of them is retried automatically.
    """

    for_good: IntervalSet = field(default_factory=IntervalSet.empty)
    for_now: IntervalSet = field(default_factory=IntervalSet.empty)
    rest: Rest | None = None

    @property
    def cells(self) -> IntervalSet:
        """Every cell that is not asked for now."""
        return self.for_good | self.for_now


def failed_cells(
    graph: Graph,
    view: StateView,
    model: Model,
    failed: Iterable[FailedBatch],
    *,
    now: datetime,
    reads: Mapping[str, frozenset[str]] | None = None,
) -> FailedCells:
    """Find the cells of a model that failed and are not asked for now.

    Args:
        graph: every model and source.
        view: what is ready, and when it changed.
        model: whose.
        failed: its failed batches, in any order; those of other tables or snapshots don't count.
        now: the instant (UTC).
        reads: per upstream, the columns that the model reads; absent means all.
    """
    state = view.models.get(model.name)
    if state is None:
        return FailedCells()
    at = state.pointer
    settled = IntervalSet.empty()  # a later batch has the last word on these
    for_good, for_now = IntervalSet.empty(), IntervalSet.empty()
    rests: list[Rest] = []
    own = [
        failure
        for failure in failed
        if (failure.version, failure.fingerprint) == (at.version, at.fingerprint)
    ]
    remaining = [(batch, cells) for batch in own if (cells := batch.unbuilt(state.runs))]
    own = [batch for batch, _ in remaining]  # cells that were built since then don't count
    tried = {
        (batch.cells, batch.run_id) for batch in own if batch.kind is not FailureKind.CANCELLED
    }
    tries = Counter(cells for cells, _ in tried)
    too_long = {(batch.cells, batch.run_id) for batch in own if batch.kind is FailureKind.TIMEOUT}
    timeouts = Counter(cells for cells, _ in too_long)
    for batch, lacking in sorted(remaining, key=lambda each: each[0].built_at, reverse=True):
        cells = lacking - settled
        settled |= cells
        if not cells or _moved(graph, view, model, batch, reads or {}):
            continue
        until = batch.ended + wait_after(tries[batch.cells])
        if not _comes_again(batch, timeouts[batch.cells]):
            for_good |= cells
        elif now < until:
            for_now |= cells
            rests.append(Rest(until, batch.batch_id))
    return FailedCells(for_good, for_now, min(rests, key=lambda rest: rest.until, default=None))


def wait_after(tries: int) -> timedelta:
    """How long a passing failure rests: twice as long each time, an hour at most."""
    return doubled(_FIRST_WAIT, tries - 1, _LONGEST_WAIT)


def _comes_again(failed: FailedBatch, timeouts: int) -> bool:
    """Whether a failure may pass by itself, so that its cells are retried."""
    if failed.kind is FailureKind.TIMEOUT:
        return timeouts <= TRIES
    return failed.kind is None or failed.kind.may_pass or len(failed.cells) > 1


def _moved(
    graph: Graph,
    view: StateView,
    model: Model,
    failed: FailedBatch,
    reads: Mapping[str, frozenset[str]],
) -> bool:
    """Whether something that a failed batch read has really changed since.

    An audit may have failed over columns that the query does not read. What could not be read may be
    repaired although no row of it changes: a source by a commit, a model by building its cells again.
    """
    if any(
        (state := view.sources.get(name)) is not None and state.pointer.delta_version != at
        for name, at in failed.sources.items()
    ):
        return True
    audited = {
        audit.upstream for audit in model.audits if isinstance(audit, (References, Reconciles))
    }
    columns = {name: read for name, read in reads.items() if name not in audited}
    return any(
        bool(cells_reading(model.cadence, upstream, cadence, changed) & failed.cells)
        for upstream in model.reads
        if (cadence := graph.node(upstream.name).cadence)
        and (changed := _changed(view, upstream, failed, columns.get(upstream.name)))
    )


def _changed(
    view: StateView, upstream: Upstream, failed: FailedBatch, columns: frozenset[str] | None
) -> IntervalSet:
    unread = failed.kind is FailureKind.INPUT
    return IntervalSet.of(
        run.interval
        for run in _runs(view, upstream.name)
        if (run.built_at if unread else run.changed_at.latest(columns)) > failed.built_at
    )


def _runs(view: StateView, name: str) -> Iterator[ReadyRun]:
    state = view.models.get(name) or view.sources.get(name)
    yield from state.runs if state is not None else ()
