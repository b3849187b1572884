"""Find the cells that a plan builds, and why, by the one rule on the view of its workspace.

It sweeps over the models four times: the cells that each model needs by itself; the upstream cells that
these need; the cells that must wait, since an upstream cell can't become ready; and the downstream cells
that may change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.downstream import Downstream
from backfill_assets.planning.plan.model_cells import ModelCells
from backfill_assets.planning.plan.plan import Why
from backfill_assets.planning.plan.restating import onward, wrong_cells
from backfill_assets.planning.rule.first_data import before_data, first_data, said_of_early
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.planning.rule.reopening import reopened_by_new_cells
from backfill_assets.snapshots.cutoff import Cutoff

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.model_change import Changes
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.plan_state import PlanState
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.planning.plan.restating import Restated
    from backfill_assets.planning.plan.windows import Window
    from backfill_assets.planning.rule.first_data import FirstData
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView

_NOTHING = IntervalSet.empty()


def cell_work(
    request: PlanRequest,
    planned_graph: PlannedGraph,
    state: PlanState,
    changes: Changes,
    windows: Mapping[str, Window],
    now: datetime,
) -> dict[str, ModelCells]:
    """Find the cells that need work, model by model.

    Args:
        request: what was asked.
        planned_graph: what the environment is to run.
        state: the ready cells.
        changes: the change of each model.
        windows: the requested range in every model's cells.
        now: the instant that history ends at.
    """
    view = _workspace_view(request, planned_graph, state, changes)
    life = CellsByModel({name: window.life for name, window in windows.items()})
    wrong = wrong_cells(request, planned_graph.graph, view, life, now)
    first = {} if request.empty else first_data(planned_graph.graph, state.view, view)
    return _Sweeps(request, planned_graph, state, changes, windows, wrong, first, view, now).run()


def _workspace_view(
    request: PlanRequest, planned_graph: PlannedGraph, state: PlanState, changes: Changes
) -> StateView:
    """View the state as a workspace will: new tables with their ready cells, and the plan's own cutoffs.

    What is published has read none of the new tables, so it is none of the workspace's own.
    """
    models = {name: held.as_read_elsewhere() for name, held in state.view.models.items()}
    for name in planned_graph.graph.order:
        change = changes.models[name]
        if change.new_version:
            held = state.built.get(change.version)
            models.pop(name, None)
            if held is not None:
                models[name] = held
    in_force = {
        name: _in_force(request, state, changes, planned_graph.graph.models[name])
        for name in planned_graph.graph.order
    }
    cutoffs = {
        name: cutoff for name, cutoff in {**state.view.cutoffs, **in_force}.items() if cutoff
    }
    return replace(state.view, models=models, cutoffs=cutoffs)


def _in_force(
    request: PlanRequest, state: PlanState, changes: Changes, model: Model
) -> Cutoff | None:
    """Give the cutoff of a model once the plan is promoted: a stored one, or a later one."""
    lifts = model.name in request.lift_cutoffs
    stored = None if lifts else state.view.cutoffs.get(model.name)
    if request.cutoff is None or not (changes.models[model.name].restates or lifts):
        return stored
    tz, asked = model.cadence.tz, Cutoff(request.cutoff, request.reason)
    later = stored is not None and start_at(stored.since, tz) >= start_at(asked.since, tz)
    return stored if later else asked


@dataclass(frozen=True, slots=True)
class _Sweeps:
    request: PlanRequest
    planned_graph: PlannedGraph
    state: PlanState
    changes: Changes
    windows: Mapping[str, Window]
    wrong: Restated
    first: Mapping[str, FirstData]
    view: StateView
    now: datetime
    cells: dict[str, ModelCells] = field(default_factory=dict[str, ModelCells])

    def run(self) -> dict[str, ModelCells]:
        """Sweep, and give every model's cells."""
        order = self.planned_graph.graph.order
        for name in order:
            self._own(name)
        for name in reversed(order):
            self._needed(name)
        for name in order:
            self._waiting(name)
            self._late(name)
        downstream = Downstream(
            self.planned_graph,
            self.state,
            self.changes,
            self.wrong,
            self.view,
            self.cells,
            self.now,
        )
        for name in order:
            downstream.follow(name)
        for name in order:
            self._waiting(name)
            self._past_the_end(name)
        return self.cells

    def _past_the_end(self, name: str) -> None:
        """Name the ready cells that read planned ones and reach past a strict end."""
        beyond = self.windows[name].beyond - self.cells[name].life
        if not beyond or name not in self.planned_graph.chosen:
            return
        model, model_cells = self.planned_graph.graph.models[name], self.cells[name]
        ready = self.view.ready(name) & beyond
        for upstream, theirs in self.planned_graph.upstream_models(name):
            planned = self.cells[upstream.name].cells
            reading = cells_reading(model.cadence, upstream, theirs.cadence, planned)
            model_cells.stale_later |= reading & ready
        if model.in_order and model_cells.cells:
            model_cells.stale_later |= ready
        if model_cells.stale_later:
            named = ranges_text(model.cadence, model_cells.stale_later)
            model_cells.notes.append(
                f"left out, since they reach past the requested end: {named}; they read what is "
                "planned, so they are stale once it is promoted"
            )

    def _own(self, name: str) -> None:
        """Plan the cells that a model needs by itself."""
        model, window = self.planned_graph.graph.models[name], self.windows[name]
        change = self.changes.models[name]
        model_cells = ModelCells(window.cells, window.life, self.view.ready(name) & window.life)
        self.cells[name] = model_cells
        if name not in self.planned_graph.chosen:
            return
        model_cells.notes += window.notes
        if self.request.late:  # these cells and no others
            self._late_again(name, model_cells, model)
            return
        if change.new_version:
            self._new_version(name, model_cells)
        self._cutoff(name, model_cells)
        self._begin_with_data(name, model_cells)
        rule = self._rule(name, model)
        because = "recorded empty" if self.request.empty else ""
        self._restated(name, model_cells)
        self._lifted(name, model_cells)
        if not self.request.empty:  # published cells stay until a batch computes them
            self._overtaken(name, model_cells, rule)
        why = Why.NEW_SNAPSHOT if change.new_version else Why.GAP
        model_cells.add(why, self._gaps(name, model_cells), because)

    def _cutoff(self, name: str, model_cells: ModelCells) -> None:
        """Note the cutoff in force, and leave out the gaps before it: they would be filled otherwise."""
        model = self.planned_graph.graph.models[name]
        model_cells.cutoff = cutoff = self.view.cutoffs.get(name)
        if cutoff is not None and model.cadence.unit is not Unit.WHOLE:
            gaps = cutoff.kept(model.cadence, model_cells.life) - model_cells.ready
            model_cells.life, model_cells.required = (
                model_cells.life - gaps,
                model_cells.required - gaps,
            )

    def _begin_with_data(self, name: str, model_cells: ModelCells) -> None:
        """Let a requested range start where the source data does; published cells stay in it."""
        if self.request.empty:
            return
        gaps = model_cells.required - model_cells.ready - self.state.view.ready(name)
        model = self.planned_graph.graph.models[name]
        if self.request.start is None:
            said = said_of_early(model, self.first[name], gaps)
            model_cells.notes += [said] if said else []
            return
        early, note = before_data(model, self.first[name], self.request.start, gaps)
        model_cells.required, model_cells.before_data = model_cells.required - early, early
        model_cells.notes += [note] if note else []

    def _lifted(self, name: str, model_cells: ModelCells) -> None:
        """Plan the older cells of a model whose cutoff ends, by the definition that runs now."""
        stored = self.state.view.cutoffs.get(name)
        if stored is None or name not in self.request.lift_cutoffs:
            return
        model = self.planned_graph.graph.models[name]
        cells = stored.kept(model.cadence, model_cells.ready)
        if model_cells.cutoff is not None:
            cells -= model_cells.cutoff.kept(model.cadence, model_cells.ready)
        model_cells.add(Why.RESTATED, cells, f"the cutoff {stored.since} is lifted")

    def _late_again(self, name: str, model_cells: ModelCells, model: Model) -> None:
        """Plan the named cells, as far as they are stale still."""
        asked = CellsByModel.of(self.request.late)[name]
        if not asked:
            return
        for stale in self._rule(name, model).stale:
            model_cells.add(Why.LATE_DATA, asked & stale.cells & model_cells.ready, stale.words)

    def _overtaken(self, name: str, model_cells: ModelCells, rule: Work) -> None:
        """Plan what is owed, and what was built before something that it reads changed."""
        model_cells.add(Why.OWED, self.view.owed[name] & model_cells.ready, "not rebuilt yet")
        for stale in rule.stale:
            why = Why.LATE_DATA if stale.late else Why.UPSTREAM_CHANGED
            model_cells.add(why, stale.cells & model_cells.required, stale.words)

    def _late(self, name: str) -> None:
        """Plan the last cells before new ones, where late rows can't be observed."""
        if (
            self.request.empty
            or name not in self.planned_graph.chosen
            or self.changes.models[name].new_version
        ):
            return
        model, model_cells = self.planned_graph.graph.models[name], self.cells[name]
        new = IntervalSet.union_all(part.cells for part in model_cells.work if part.why is Why.GAP)
        late = reopened_by_new_cells(
            self.planned_graph.graph, self.view, model, new, model_cells.required
        )
        model_cells.add(Why.LATE_DATA, late, "late rows may belong to it")

    def _rule(self, name: str, model: Model) -> Work:
        """Ask the rule; of a kept table also what the published tables say that new ones are to replace."""
        graph, view = self.planned_graph.graph, self.view
        if name not in view.models:
            return needs_work(graph, view, model, now=self.now)
        view = replace(view, models={**self.state.view.models, **view.models})
        return needs_work(graph, view, model, now=self.now, reads=self.planned_graph.reads(name))

    def _new_version(self, name: str, model_cells: ModelCells) -> None:
        """Widen the range to all cells that a protected environment publishes, so that readers lose none."""
        life = model_cells.life | self.windows[name].beyond
        published = self.state.view.ready(name) & life
        more = published - model_cells.required
        if more and self.view.environment.protected:
            model_cells.required |= more
            model_cells.life, model_cells.ready = life, self.view.ready(name) & life
            model_cells.notes.append(
                "the range is widened to all that is published: a new table without it would take "
                "it from its readers (a cutoff keeps older cells under the old definition)"
            )

    def _restated(self, name: str, model_cells: ModelCells) -> None:
        """Plan what was declared wrong, and what a kept table computes anew from a date on."""
        wrong = self.wrong.named[name] & self.wrong.spread[name]
        if (
            name in self.planned_graph.graph.models
            and self.planned_graph.graph.models[name].in_order
        ):
            wrong = onward(wrong, model_cells.life)
        model_cells.add(Why.RESTATED, wrong & model_cells.ready, self.wrong.because.get(name, ""))
        change = self.changes.models[name]
        if not change.restates:
            return
        since = (
            model_cells.cutoff.since
            if model_cells.cutoff is not None
            else self.request.effective_from
        )
        model = self.planned_graph.graph.models[name]
        if since is None or model.cadence.unit is Unit.WHOLE:
            cells = model_cells.ready
        else:
            first = epoch_of(model.cadence.ceil(start_at(since, model.cadence.tz)))
            cells = (
                IntervalSet.of_pairs([(first, model_cells.ready.boundaries[-1])])
                if model_cells.ready
                else _NOTHING
            )
        model_cells.add(Why.RESTATED, cells & model_cells.ready, f"new definition from {since} on")

    def _gaps(self, name: str, model_cells: ModelCells) -> IntervalSet:
        """Give the required cells that are not ready, and the restated ones that never were."""
        missing = (model_cells.required | self.wrong.spread[name]) - model_cells.ready
        if self.request.launch:  # the launch named published cells; gaps elsewhere are not meant
            missing = _NOTHING
        if self.planned_graph.graph.models[name].in_order:
            missing = _with_earlier(model_cells, missing)
        if missing and not self._fills(name):
            owner = self.state.view.models[name].pointer.environment
            model_cells.notes.append(f"its gaps wait for '{owner}', which alone writes its table")
            model_cells.waiting |= missing
            return _NOTHING
        return missing

    def _fills(self, name: str) -> bool:
        """Whether this environment may fill the model's gaps: the table is its own."""
        state = self.view.models.get(name)
        new = self.changes.models[name].new_version
        return new or state is None or state.pointer.environment == self.view.environment.name

    def _needed(self, name: str) -> None:
        """Plan the upstream gaps that a model's cells read, whatever the requested range."""
        cells = self.cells[name].certain
        if not cells or self.request.skip_upstream:
            return
        for upstream, theirs in self.planned_graph.upstream_models(name):
            their = self.cells[upstream.name]
            model = self.planned_graph.graph.models[name]
            read = cells_read(model.cadence, upstream, theirs.cadence, cells, until=self.now)
            lacking = (read & their.life) - their.ready - their.cells
            if lacking and theirs.in_order:
                lacking = _with_earlier(their, lacking)
            allowed = upstream.name in self.planned_graph.chosen | self.planned_graph.helpers
            if lacking and allowed and self._fills(upstream.name):
                new = self.changes.models[upstream.name].new_version
                why = Why.NEW_SNAPSHOT if new else Why.GAP
                their.add(
                    why, lacking, "recorded empty" if self.request.empty else f"{name} reads it"
                )

    def _waiting(self, name: str) -> None:
        """Leave out cells that read cells which are neither ready nor planned."""
        self._wait_for_others(name)
        model_cells, model = self.cells[name], self.planned_graph.graph.models[name]
        if model.in_order:
            lacking = model_cells.life - model_cells.ready - model_cells.cells
            _leave_out(
                model_cells,
                model,
                onward(lacking, model_cells.life) & model_cells.cells,
                "earlier cells",
            )

    def _wait_for_others(self, name: str) -> None:
        model_cells, model = self.cells[name], self.planned_graph.graph.models[name]
        for upstream, theirs in self.planned_graph.upstream_models(name):
            cells = model_cells.cells
            if not cells:
                return
            their = self.cells[upstream.name]
            read = cells_read(model.cadence, upstream, theirs.cadence, cells, until=self.now)
            lacking = read - self.view.ready(upstream.name) - their.cells
            if not lacking:
                continue
            held = cells_reading(model.cadence, upstream, theirs.cadence, lacking) & cells
            _leave_out(model_cells, model, held, f"cells of {upstream.name}")


def _with_earlier(model_cells: ModelCells, missing: IntervalSet) -> IntervalSet:
    """Add the gaps before planned cells: a model that reads itself is filled in order."""
    planned = missing | model_cells.cells
    if not planned:
        return missing
    gaps = model_cells.life - model_cells.ready
    more = gaps.within(model_cells.life.boundaries[0], planned.boundaries[-1]) - planned
    if more:
        model_cells.notes.append(
            "it reads its own earlier cells: the gaps before them are filled first"
        )
    return missing | more


def _leave_out(model_cells: ModelCells, model: Model, cells: IntervalSet, what: str) -> None:
    if not cells:
        return
    model_cells.leave_out(cells)
    count = model.cadence.count(cells)
    model_cells.notes.append(
        f"{count} cell{'s' if count > 1 else ''} left out: {'they read' if count > 1 else 'it reads'} "
        f"{what} that are neither ready nor planned"
    )
