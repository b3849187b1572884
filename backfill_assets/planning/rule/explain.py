"""Explain why one cell is, or is not, in the next work, by the branch of the rule that applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import life_text, ranges_text
from backfill_assets.models.cells import cells_read
from backfill_assets.models.model import Model
from backfill_assets.planning.rule.lacking_in_sources import lacking_in_sources
from backfill_assets.planning.rule.needs_work import needs_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView

    Heals = Callable[[str, IntervalSet], Mapping[str, IntervalSet]]
    """Gives of a model's stale cells those that need no plan of a person, by what they need, in words."""

_DEEPEST = 8
_BY_PLAN = "published history changes by a plan only"


@dataclass(frozen=True, slots=True)
class Reason:
    """One line of the answer.

    Attributes:
        depth: 0 for the cell asked about, 1 for what it reads, and so on.
        model: which model the line is about.
        cells: keys of the cells, as ranges.
        branch: ``not required``, ``gap``, ``waits``, ``upstream changed``, ``late data``, ``restated``,
            ``ready``, ``cutoff``.
        text: the sentence.
    """

    depth: int
    model: str
    cells: str
    branch: str
    text: str


def why(  # noqa: PLR0913 - all that an answer rests on
    graph: Graph,
    view: StateView,
    model: str,
    cell: Interval,
    *,
    now: datetime,
    reads: Mapping[str, Mapping[str, frozenset[str]]] | None = None,
    heals: Heals = lambda _, __: {},
) -> tuple[Reason, ...]:
    """Follow the rule for one cell, and upstream from there.

    Args:
        graph: every model and source.
        view: the environment's state.
        model: the model asked about.
        cell: whole cells of it.
        now: the instant that history ends at (UTC).
        reads: per model, what it reads by column (lineage).
        heals: tells which stale cells need no plan of a person.
    """
    explaining = _Explaining(graph, view, now, reads or {}, heals)
    return tuple(explaining.why(model, IntervalSet.of([cell]), 0))


@dataclass(frozen=True, slots=True)
class _Explaining:
    """The values that stay the same on the way upstream."""

    graph: Graph
    view: StateView
    now: datetime
    reads: Mapping[str, Mapping[str, frozenset[str]]]
    heals: Heals

    def why(self, name: str, cells: IntervalSet, depth: int) -> Iterator[Reason]:
        """Give the branches of some cells, then those of the upstream cells that decide."""
        model = self.graph.model(name)
        work = needs_work(self.graph, self.view, model, now=self.now, reads=self.reads.get(name))
        waiting = lacking_in_sources(self.graph, self.view, model, cells & work.gaps, self.now)
        unneeded = cells - work.required - self.view.kept(model, cells)
        for part, branch, text in (
            *_not_required(model, unneeded, self.now),
            *_branches(self.view, model, work, cells, waiting),
            *self._stale(model, work, cells),
            *_settled(self.view, model, work, cells),
        ):
            if part:
                yield Reason(depth, name, ranges_text(model.cadence, part), branch, text)
        kept = self.view.kept(model, cells)
        if kept:
            words = self.view.cutoffs[name].words(name)
            yield Reason(depth, name, ranges_text(model.cadence, kept), "cutoff", words)
        if depth == _DEEPEST:
            return
        for upstream in model.reads:
            deciding = self._deciding(model, upstream, work, cells)
            if deciding and upstream.name != name:
                yield from self.why(upstream.name, deciding, depth + 1)

    def _stale(
        self, model: Model, work: Work, cells: IntervalSet
    ) -> Iterator[tuple[IntervalSet, str, str]]:
        """Say of overtaken cells what builds them again; those that wait for rows have said so."""
        if not work.stale_cells & cells:
            return
        ends = dict(self.heals(model.name, work.stale_cells))
        ends[_BY_PLAN] = work.stale_cells - IntervalSet.union_all(ends.values())
        awaiting = IntervalSet.union_all(work.awaits.values())
        for stale in work.stale:
            branch = "late data" if stale.late else "upstream changed"
            overtaken = cells & stale.cells - (awaiting if stale.late else IntervalSet.empty())
            for end, ended in ends.items():
                yield overtaken & ended, branch, f"built before {stale.words}; {end}"

    def _deciding(
        self, model: Model, upstream: Upstream, work: Work, cells: IntervalSet
    ) -> IntervalSet:
        """The upstream cells that a cell waits for, or whose change overtook a ready cell."""
        upstream_model = self.graph.node(upstream.name)
        if not isinstance(upstream_model, Model):
            return IntervalSet.empty()

        def read(some: IntervalSet) -> IntervalSet:
            return cells_read(model.cadence, upstream, upstream_model.cadence, some, until=self.now)

        waiting = work.gaps | work.blocked.get(upstream.name, IntervalSet.empty())
        lacking = read(cells & waiting) - self.view.ready(upstream.name)
        stale = (part for part in work.stale if part.upstream == upstream.name)
        changed = (read(cells & part.cells) & part.upstream_cells for part in stale)
        return lacking | IntervalSet.union_all(changed)


def _branches(
    view: StateView,
    model: Model,
    work: Work,
    cells: IntervalSet,
    waiting: Mapping[str, IntervalSet],
) -> Iterator[tuple[IntervalSet, str, str]]:
    claimed = view.claimed[model.name]
    yield cells & work.gaps & claimed, "running", "a batch has claimed it and is at work"
    runnable = (cells & work.runnable) - claimed
    for source, lacking in waiting.items():
        text = f"required and not ready; {source} had no rows for it when it was looked at last"
        yield runnable & lacking, "waits", text
    text = "required and not ready; all it reads is ready"
    yield runnable - IntervalSet.union_all(waiting.values()), "gap", text
    for upstream, blocked in work.blocked.items():
        lacking = f"reads cells of {upstream} that are missing"
        yield cells & blocked & work.gaps, "waits", f"required and not ready; {lacking}"
        yield cells & blocked - work.gaps, "waits", f"to be built again, but {lacking}"
    for source, awaited in work.awaits.items():
        text = (
            f"{source} has lost the rows that it was built from; it stays as it is until there are rows "
            "again, or `backfill plan --restate` says that they were wrong"
        )
        yield cells & awaited, "waits", text


def _settled(
    view: StateView, model: Model, work: Work, cells: IntervalSet
) -> Iterator[tuple[IntervalSet, str, str]]:
    yield from _owed(view, model, (cells & work.owed) - work.stale_cells)
    fresh = (cells & work.ready) - work.stale_cells - work.owed
    state = view.models.get(model.name)
    for run in state.runs if state else ():
        part = fresh & IntervalSet.of([run.interval])
        yield (
            part,
            "ready",
            f"built by batch {run.batch_id}; nothing that it read has changed since",
        )


def _owed(
    view: StateView, model: Model, cells: IntervalSet
) -> Iterator[tuple[IntervalSet, str, str]]:
    """Say who declared cells wrong and why; of two marks on a cell, give both."""
    marks = view.owing.get(model.name, ())
    for mark in marks:
        text = f"declared wrong, and not rebuilt or published yet: {mark.words}"
        yield cells & mark.cells, "restated", text
    marked_cells = IntervalSet.union_all(mark.cells for mark in marks)
    text = "declared wrong by a restatement, and not rebuilt or published yet"
    yield cells - marked_cells, "restated", text


def _not_required(
    model: Model, cells: IntervalSet, now: datetime
) -> Iterator[tuple[IntervalSet, str, str]]:
    """Tell the cells that lie outside of the model's life from those that only become due later."""
    if not cells:
        return
    cadence, last = model.cadence, cells.boundaries[-1]
    begin = max(cadence.due(now), cadence.start or cadence.due(now))
    end = min(last, epoch_of(cadence.end)) if cadence.end else last
    later = cells.within(epoch_of(begin), end)
    text = f"outside what is required: {life_text(cadence)}"
    yield cells - later, "not required", text
    if later:
        due = minute_text(cadence.due_at(cadence.next(later.span().start)))
        yield later, "not required", f"not due before {due}"
