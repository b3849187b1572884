"""The cells that a plan is about, and why: the one rule, on what its workspace will see.

Sweeps over the models: what each needs by itself; what that needs from upstream; what must wait,
since something it reads can't come; and what may change because of it downstream.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.models.upstream import Reopens
from backfill_assets.planning.late import reopened
from backfill_assets.planning.needs_work import last_cells, needs_work
from backfill_assets.planning.plan import CellWork, Why
from backfill_assets.planning.restating import onward, wrong_cells

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.changes import Changes
    from backfill_assets.planning.intended import Intended
    from backfill_assets.planning.needs_work import Work
    from backfill_assets.planning.plan_state import PlanState
    from backfill_assets.planning.request import PlanRequest
    from backfill_assets.planning.requested import Window
    from backfill_assets.planning.restating import Wrong
    from backfill_assets.snapshots.state_view import StateView

_NOTHING = IntervalSet.empty()


@dataclass(slots=True)
class ModelCells:
    """The cells of one model.

    Attributes:
        required: in the requested range.
        life: required, whatever the range.
        ready: what the workspace finds there before anything is built.
        work: cells by reason; a cell occurs once.
        waiting: cells left out, since something that they read can't become ready.
        notes: what a reader should know.
    """

    required: IntervalSet
    life: IntervalSet
    ready: IntervalSet
    work: list[CellWork] = field(default_factory=list[CellWork])
    waiting: IntervalSet = field(default_factory=IntervalSet.empty)
    notes: list[str] = field(default_factory=list[str])

    @property
    def cells(self) -> IntervalSet:
        """Every planned cell."""
        return IntervalSet.union_all(one.cells for one in self.work)

    @property
    def certain(self) -> IntervalSet:
        """Planned cells that are built whatever their input turns out to be."""
        return IntervalSet.union_all(one.cells for one in self.work if one.certain)

    def add(self, why: Why, cells: IntervalSet, because: str = "", *, certain: bool = True) -> None:
        """Plan the cells that no earlier reason has planned."""
        new = cells - self.cells
        if new:
            self.work.append(CellWork(why, new, certain, because))

    def leave_out(self, cells: IntervalSet) -> None:
        """Take cells out of the work again; those that are ready stay as they are."""
        kept = (replace(one, cells=one.cells - cells) for one in self.work)
        self.work = [one for one in kept if one.cells]
        self.waiting |= cells - self.ready


def cell_work(
    request: PlanRequest,
    intended: Intended,
    state: PlanState,
    changes: Changes,
    windows: Mapping[str, Window],
    now: datetime,
) -> dict[str, ModelCells]:
    """Find the cells that need work, model by model.

    Args:
        request: what was asked.
        intended: what the environment is to run.
        state: what is there.
        changes: what becomes of each model.
        windows: the requested range in every model's cells.
        now: the instant that history ends at.
    """
    view = _workspace_view(intended, state, changes)
    life = {name: window.life for name, window in windows.items()}
    wrong = wrong_cells(request, intended.graph, view, life, now)
    return _Sweeps(request, intended, state, changes, windows, wrong, view, now).run()


def _workspace_view(intended: Intended, state: PlanState, changes: Changes) -> StateView:
    """Picture what a workspace finds: new tables with what they hold already, the rest as it is."""
    models = dict(state.view.models)
    for name in intended.graph.order:
        change = changes.models[name]
        if change.new_version:
            held = state.built.get(change.version)
            models.pop(name, None)
            if held is not None:
                models[name] = held
    return replace(state.view, models=models)


@dataclass(frozen=True, slots=True)
class _Sweeps:
    request: PlanRequest
    intended: Intended
    state: PlanState
    changes: Changes
    windows: Mapping[str, Window]
    wrong: Wrong
    view: StateView
    now: datetime
    found: dict[str, ModelCells] = field(default_factory=dict[str, ModelCells])
    unsettled: dict[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])

    def run(self) -> dict[str, ModelCells]:
        """Sweep, and give every model's cells."""
        order = self.intended.graph.order
        for name in order:
            self._own(name)
        for name in reversed(order):
            self._needed(name)
        for name in order:
            self._waiting(name)
            self._late(name)
        for name in order:
            self._downstream(name)
        for name in order:
            self._waiting(name)
        return self.found

    def _own(self, name: str) -> None:
        """Plan what a model needs by itself."""
        model, window = self.intended.graph.models[name], self.windows[name]
        change = self.changes.models[name]
        found = ModelCells(window.cells, window.life, self.view.ready(name) & window.life)
        self.found[name] = found
        if name not in self.intended.chosen:
            return
        found.notes += window.notes
        if change.new_version:
            self._new_version(name, found)
        rule = self._rule(name, model)
        because = "recorded empty" if self.request.empty else ""
        self._restated(name, found)
        found.add(Why.OWED, self.view.owed.get(name, _NOTHING) & found.ready, "not rebuilt yet")
        for stale in rule.stale:
            found.add(
                Why.UPSTREAM_CHANGED, stale.cells & found.required, f"{stale.upstream} changed"
            )
        why = Why.NEW_SNAPSHOT if change.new_version else Why.GAP
        found.add(why, self._gaps(name, found), because)

    def _late(self, name: str) -> None:
        """Plan the last cells before new ones, where nobody can see late rows arrive."""
        if name not in self.intended.chosen or self.changes.models[name].new_version:
            return
        model, found = self.intended.graph.models[name], self.found[name]
        new = IntervalSet.union_all(one.cells for one in found.work if one.why is Why.GAP)
        late = reopened(self.intended.graph, self.view, model, new, found.required)
        found.add(Why.LATE_DATA, late, "late rows may belong to it")

    def _rule(self, name: str, model: Model) -> Work:
        reads = self.intended.reads(name) if name in self.view.models else None
        return needs_work(self.intended.graph, self.view, model, now=self.now, reads=reads)

    def _new_version(self, name: str, found: ModelCells) -> None:
        """Widen the range to what a protected environment publishes: its readers keep it all."""
        published = self.state.view.ready(name) & found.life
        more = published - found.required
        if more and self.view.environment.protected:
            found.required |= more
            found.notes.append(
                "the range is widened to all that is published: a new table without it would take "
                "it from its readers (a cutoff keeps older cells under the old definition)"
            )

    def _restated(self, name: str, found: ModelCells) -> None:
        """Plan what was declared wrong, and what a kept table computes anew from a date on."""
        wrong = self.wrong.named.get(name, _NOTHING) & self.wrong.spread.get(name, _NOTHING)
        if name in self.intended.graph.models and self.intended.graph.models[name].in_order:
            wrong = onward(wrong, found.life)
        found.add(Why.RESTATED, wrong & found.ready, self.wrong.because.get(name, ""))
        change = self.changes.models[name]
        if not change.restates:
            return
        since = self.request.cutoff or self.request.effective_from
        model = self.intended.graph.models[name]
        if since is None or model.cadence.unit is Unit.WHOLE:
            cells = found.ready
        else:
            first = epoch_of(model.cadence.ceil(start_at(since, model.cadence.tz)))
            cells = (
                IntervalSet.of_pairs([(first, found.ready.boundaries[-1])])
                if found.ready
                else _NOTHING
            )
        found.add(Why.RESTATED, cells & found.ready, f"new definition from {since} on")

    def _gaps(self, name: str, found: ModelCells) -> IntervalSet:
        """Give the required cells that are not ready, and the restated ones that never were."""
        if self.request.launch:  # somebody named published cells; what lacks elsewhere is not meant
            return _NOTHING
        missing = (found.required | self.wrong.spread.get(name, _NOTHING)) - found.ready
        if missing and not self._fills(name):
            owner = self.state.view.models[name].pointer.environment
            found.notes.append(f"its gaps wait for '{owner}', which alone writes its table")
            found.waiting |= missing
            return _NOTHING
        return missing

    def _fills(self, name: str) -> bool:
        """Whether this environment may fill the model's gaps: the table is its own."""
        state = self.view.models.get(name)
        new = self.changes.models[name].new_version
        return new or state is None or state.pointer.environment == self.view.environment.name

    def _needed(self, name: str) -> None:
        """Plan the upstream gaps that a model's cells read, whatever the requested range."""
        cells = self.found[name].certain
        if not cells or self.request.skip_upstream:
            return
        for upstream, theirs in self._upstream_models(name):
            their = self.found[upstream.name]
            model = self.intended.graph.models[name]
            read = cells_read(model.cadence, upstream, theirs.cadence, cells, until=self.now)
            lacking = (read & their.life) - their.ready - their.cells
            allowed = upstream.name in self.intended.chosen | self.intended.helpers
            if lacking and allowed and self._fills(upstream.name):
                new = self.changes.models[upstream.name].new_version
                why = Why.NEW_SNAPSHOT if new else Why.GAP
                their.add(
                    why, lacking, "recorded empty" if self.request.empty else f"{name} reads it"
                )

    def _upstream_models(self, name: str) -> list[tuple[Upstream, Model]]:
        graph = self.intended.graph
        return [
            (up, graph.models[up.name])
            for up in graph.models[name].reads
            if up.name in graph.models and up.name != name
        ]

    def _downstream(self, name: str) -> None:
        """Plan the ready cells that read planned ones: only if those really change."""
        found, model = self.found[name], self.intended.graph.models[name]
        if name in self.intended.chosen:
            self._may_follow(name, model, found)
        self.unsettled[name] = self._unsettled(name, model, found)

    def _may_follow(self, name: str, model: Model, found: ModelCells) -> None:
        for upstream, theirs in self._upstream_models(name):
            changed = self._may_change(name, upstream.name)
            cells = self._reading(model, upstream, theirs, changed) & found.ready
            found.add(Why.UPSTREAM_CHANGED, cells, f"if {upstream.name} changes", certain=False)
        told = self.wrong.spread.get(name, _NOTHING) & found.ready
        found.add(Why.UPSTREAM_CHANGED, told, "if what it reads as a whole changes", certain=False)
        if model.in_order:
            later = onward(found.cells, found.life) & found.ready
            found.add(Why.UPSTREAM_CHANGED, later, "if its own earlier cells change", certain=False)

    def _may_change(self, name: str, upstream: str) -> IntervalSet:
        """Give the upstream cells whose content may become another one than is published."""
        if self.changes.models[upstream].new_version and self.changes.models[name].new_version:
            return self.found[upstream].cells
        return self.unsettled[upstream]

    def _unsettled(self, name: str, model: Model, found: ModelCells) -> IntervalSet:
        """Give the planned cells that may change in more than what the model's own change says.

        A new table differs from the published one also where that has a gap, is stale or wrong,
        and where what it reads moves.
        """
        if not self.changes.models[name].new_version or not found.cells:
            return found.cells
        published = self.state.view
        rule = needs_work(self.intended.graph, published, model, now=self.now)
        parts = [
            found.cells - published.ready(name),
            rule.stale_cells,
            published.owed.get(name, _NOTHING),
            self.wrong.spread.get(name, _NOTHING),
            *(
                self._reading(model, upstream, theirs, self.unsettled[upstream.name])
                for upstream, theirs in self._upstream_models(name)
            ),
        ]
        cells = IntervalSet.union_all(parts) & found.cells
        return onward(cells, found.life) & found.cells if model.in_order else cells

    def _reading(
        self, model: Model, upstream: Upstream, theirs: Model, changed: IntervalSet
    ) -> IntervalSet:
        if not changed:
            return changed
        if theirs.cadence.unit is Unit.WHOLE and model.cadence.unit is not Unit.WHOLE:
            ready = self.view.ready(model.name) | self.state.view.ready(model.name)
            match upstream.reopens:
                case Reopens.NEVER:
                    return _NOTHING
                case Reopens.ALL:
                    return ready
                case Reopens.LATE_WINDOW:
                    return last_cells(model, ready, model.late_window)
        return cells_reading(model.cadence, upstream, theirs.cadence, changed)

    def _waiting(self, name: str) -> None:
        """Leave out what reads upstream cells that are neither ready nor planned."""
        found, model = self.found[name], self.intended.graph.models[name]
        for upstream, theirs in self._upstream_models(name):
            cells = found.cells
            if not cells:
                return
            their = self.found[upstream.name]
            read = cells_read(model.cadence, upstream, theirs.cadence, cells, until=self.now)
            lacking = read - self.view.ready(upstream.name) - their.cells
            if not lacking:
                continue
            held = cells_reading(model.cadence, upstream, theirs.cadence, lacking) & cells
            if held:
                found.leave_out(held)
                count = model.cadence.count(held)
                found.notes.append(
                    f"{count} cell{'s' if count > 1 else ''} left out: "
                    f"{'they read' if count > 1 else 'it reads'} cells of {upstream.name} that "
                    "are neither ready nor planned"
                )
