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
from backfill_assets.intervals.restated import onward
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.cells import cells_read, cells_without_input
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.change.life import lost_reads
from backfill_assets.planning.plan.downstream import Downstream
from backfill_assets.planning.plan.model_cells import ModelCells
from backfill_assets.planning.plan.plan import Why
from backfill_assets.planning.plan.restating import wrong_cells
from backfill_assets.planning.rule.first_data import before_data, first_data, said_of_early
from backfill_assets.planning.rule.lacking_in_sources import (
    emptied_in_sources,
    lacking_in_sources,
)
from backfill_assets.planning.rule.reopening import reopened, reopened_by_new_cells
from backfill_assets.snapshots.cutoff import Cutoff

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.model_change import Changes
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.restating import Restated
    from backfill_assets.planning.plan.windows import Window
    from backfill_assets.planning.rule.first_data import FirstData
    from backfill_assets.planning.rule.stale import Stale
    from backfill_assets.snapshots.state_view import StateView

_NOTHING = IntervalSet.empty()


def cell_work(
    planned: PlannedGraph, changes: Changes, windows: Mapping[str, Window]
) -> dict[str, ModelCells]:
    """Find the cells that need work, model by model.

    Args:
        planned: what the environment is to run, and what it publishes.
        changes: the change of each model.
        windows: the requested range in every model's cells.
    """
    view = _workspace_view(planned, changes)
    life = CellsByModel({name: window.life for name, window in windows.items()})
    wrong = wrong_cells(planned.request, planned.graph, view, life, planned.now)
    first = {} if planned.request.empty else first_data(planned.graph, planned.published, view)
    return _Sweeps(planned, changes, windows, wrong, first, view).run()


def _workspace_view(planned: PlannedGraph, changes: Changes) -> StateView:
    """View the state as a workspace will: new tables with their ready cells, and the plan's own cutoffs.

    What is published has read none of the new tables with ready cells, so it is none of the workspace's own.
    """
    models = dict(planned.published.models)
    if planned.state.built:
        models = {name: state.as_read_elsewhere() for name, state in models.items()}
    for name in planned.graph.order:
        change = changes.models[name]
        if change.new_version:
            new_state = planned.state.built.get(change.version)
            models.pop(name, None)
            if new_state is not None:
                models[name] = new_state
    in_force = {
        name: _in_force(planned, changes, planned.models[name]) for name in planned.graph.order
    }
    cutoffs = {
        name: cutoff for name, cutoff in {**planned.published.cutoffs, **in_force}.items() if cutoff
    }
    earlier = {**planned.published.earlier, **_earlier_definitions(planned, changes)}
    return replace(planned.published, models=models, cutoffs=cutoffs, earlier=earlier)


def _earlier_definitions(planned: PlannedGraph, changes: Changes) -> dict[str, Model]:
    """Give the definitions that run now, and that a plan replaces in their own tables: these keep cells of them."""
    published = planned.published
    replaced = [
        name
        for name, change in changes.models.items()
        if name in published.models.keys() & planned.before.keys() and not change.new_version
        if planned.before[name].fingerprint.logic != planned.snapshots[name].fingerprint.logic
    ]
    return {
        run.fingerprint: planned.before[name].model
        for name in replaced
        for run in published.models[name].runs
        if run.fingerprint is not None and run.fingerprint not in published.earlier
    }


def _in_force(planned: PlannedGraph, changes: Changes, model: Model) -> Cutoff | None:
    """Give the cutoff of a model once the plan is promoted: a stored one, or a later one."""
    request = planned.request
    lifts = model.name in request.lift_cutoffs
    stored = None if lifts else planned.published.cutoffs.get(model.name)
    if request.cutoff is None or not (changes.models[model.name].restates or lifts):
        return stored
    tz, new_cutoff = model.cadence.tz, Cutoff(request.cutoff, request.reason)
    later = stored is not None and start_at(stored.since, tz) >= start_at(new_cutoff.since, tz)
    return stored if later else new_cutoff


@dataclass(frozen=True, slots=True)
class _Sweeps:
    planned: PlannedGraph
    changes: Changes
    windows: Mapping[str, Window]
    wrong: Restated
    first: Mapping[str, FirstData]
    view: StateView
    cells: dict[str, ModelCells] = field(default_factory=dict[str, ModelCells])

    def run(self) -> dict[str, ModelCells]:
        """Sweep, and give every model's cells."""
        order = self.planned.graph.order
        for name in order:
            self._own(name)
        for name in reversed(order):
            self._needed(name)
        read = self._read_by_published()
        for name in order:
            self._wait_for_rows(name, read[name])
            self._waiting(name)
            self._late(name)
        downstream = Downstream(self.planned, self.changes, self.wrong, self.view, self.cells)
        for name in order:
            downstream.follow(name)
        for name in order:
            self._waiting(name)
            self._past_the_end(name)
        return self.cells

    def _past_the_end(self, name: str) -> None:
        """Name the ready cells that read planned ones and reach past a strict end."""
        beyond = self.windows[name].beyond - self.cells[name].life
        if not beyond or name not in self.planned.chosen:
            return
        model, model_cells = self.planned.models[name], self.cells[name]
        ready = self.view.ready(name) & beyond
        for upstream, upstream_model in self.planned.upstream_models(name):
            planned = self.cells[upstream.name].cells
            reading = reopened(
                model, upstream, upstream_model.cadence, planned, self.view.ready(name)
            )
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
        window = self.windows[name]
        change = self.changes.models[name]
        model_cells = ModelCells(window.cells, window.life, self.view.ready(name) & window.life)
        self.cells[name] = model_cells
        if name not in self.planned.chosen:
            return
        model_cells.notes += window.notes
        model_cells.missed = window.missed
        if self.planned.request.late:  # these cells and no others
            self._late_again(name, model_cells)
            return
        if change.new_version:
            self._new_version(name, model_cells)
        self._cutoff(name, model_cells)
        self._begin_with_data(name, model_cells)
        because = "recorded empty" if self.planned.request.empty else ""
        self._restated(name, model_cells)
        self._lifted(name, model_cells)
        self._lost_reads(name, model_cells)
        if not self.planned.request.empty:  # published cells stay until a batch computes them
            self._overtaken(name, model_cells)
            self._never_computed(name, model_cells)
        why = Why.NEW_SNAPSHOT if change.new_version else Why.GAP
        model_cells.add(why, self._gaps(name, model_cells), because)

    def _cutoff(self, name: str, model_cells: ModelCells) -> None:
        """Note the cutoff in force, and leave out the gaps before it: they would be filled otherwise."""
        model = self.planned.models[name]
        model_cells.cutoff = cutoff = self.view.cutoffs.get(name)
        if cutoff is not None and model.cadence.unit is not Unit.WHOLE:
            gaps = cutoff.kept(model.cadence, model_cells.life) - model_cells.ready
            model_cells.life, model_cells.required = (
                model_cells.life - gaps,
                model_cells.required - gaps,
            )

    def _begin_with_data(self, name: str, model_cells: ModelCells) -> None:
        """Let a requested range start where the source data does; published cells stay in it."""
        if self.planned.request.empty:
            return
        gaps = model_cells.required - model_cells.ready - self.planned.published.ready(name)
        model = self.planned.models[name]
        if self.planned.request.start is None:
            text = said_of_early(model, self.first[name], gaps)
            model_cells.notes += [text] if text else []
            return
        early, note = before_data(model, self.first[name], self.planned.request.start, gaps)
        model_cells.required, model_cells.before_data = model_cells.required - early, early
        model_cells.notes += [note] if note else []

    def _lifted(self, name: str, model_cells: ModelCells) -> None:
        """Plan the older cells of a model whose cutoff ends, by the definition that runs now."""
        stored = self.planned.published.cutoffs.get(name)
        if stored is None or name not in self.planned.request.lift_cutoffs:
            return
        model = self.planned.models[name]
        cells = stored.kept(model.cadence, model_cells.ready)
        if model_cells.cutoff is not None:
            cells -= model_cells.cutoff.kept(model.cadence, model_cells.ready)
        model_cells.add(Why.RESTATED, cells, f"the cutoff {stored.since} is lifted")

    def _lost_reads(self, name: str, model_cells: ModelCells) -> None:
        """Plan the cells that read published ones which the plan takes away: no stamp tells them of it."""
        for upstream, lost, cells in lost_reads(self.planned, self.changes, name):
            loss = f"{upstream.name} loses {ranges_text(upstream.cadence, lost)}"
            model_cells.add(Why.UPSTREAM_CHANGED, cells & model_cells.ready, loss)

    def _late_again(self, name: str, model_cells: ModelCells) -> None:
        """Plan the named cells, as far as they are stale still."""
        requested_cells = CellsByModel.of(self.planned.request.late)[name]
        if not requested_cells:
            return
        for stale in self._stale(name):
            model_cells.add(
                Why.LATE_DATA, requested_cells & stale.cells & model_cells.ready, stale.words
            )

    def _overtaken(self, name: str, model_cells: ModelCells) -> None:
        """Plan what is owed, and what was built before something that it reads changed."""
        model_cells.add(Why.OWED, self.view.owed[name] & model_cells.ready, "not rebuilt yet")
        found, model = self._stale(name), self.planned.models[name]
        awaits = emptied_in_sources(self.planned.graph, self.view, model, found)
        awaiting = IntervalSet.union_all(awaits.values())
        for stale in found:
            why = Why.LATE_DATA if stale.late else Why.UPSTREAM_CHANGED
            model_cells.add(why, (stale.cells - awaiting) & model_cells.required, stale.words)
        for source, cells in awaits.items():
            if left := (cells & model_cells.required) - model_cells.cells:
                named = ranges_text(model.cadence, left)
                model_cells.notes.append(
                    f"left as published, since {source} has lost the rows that they were built from: {named}; "
                    f"--restate {source}:A..B builds them again without these rows"
                )

    def _never_computed(self, name: str, model_cells: ModelCells) -> None:
        """Plan what a new table holds as empty only because another plan has recorded it so."""
        state = self.view.models.get(name)
        if state is not None and self.changes.models[name].new_version:
            cells = state.recorded_empty & model_cells.ready
            model_cells.add(Why.OWED, cells, "recorded as empty, and never computed")

    def _late(self, name: str) -> None:
        """Plan the last cells before new ones, where late rows can't be observed."""
        if (
            self.planned.request.empty
            or name not in self.planned.chosen
            or self.changes.models[name].new_version
        ):
            return
        model, model_cells = self.planned.models[name], self.cells[name]
        new = IntervalSet.union_all(part.cells for part in model_cells.work if part.why is Why.GAP)
        late = reopened_by_new_cells(
            self.planned.graph, self.view, model, new, model_cells.required
        )
        model_cells.add(Why.LATE_DATA, late, "late rows may belong to it")

    def _stale(self, name: str) -> tuple[Stale, ...]:
        """Ask the rule what is stale; of a kept table also by what the published tables say that new ones are to replace."""
        if name not in self.view.models:
            return ()
        models = {**self.planned.published.models, **self.view.models}
        return self.planned.stale(name, replace(self.view, models=models))

    def _new_version(self, name: str, model_cells: ModelCells) -> None:
        """Widen the range to all cells that a protected environment publishes, so that readers lose none."""
        life = model_cells.life | self.windows[name].beyond
        published = self.planned.published.ready(name) & life
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
        model = self.planned.models[name]
        wrong = self.wrong.named[name] & self.wrong.spread[name]
        if model.in_order:
            wrong = onward(wrong, model_cells.life)
        model_cells.add(Why.RESTATED, wrong & model_cells.ready, self.wrong.because.get(name, ""))
        change = self.changes.models[name]
        if not change.restates:
            return
        tz, cutoff = model.cadence.tz, model_cells.cutoff
        bounds = (self.planned.request.effective_from, cutoff.since if cutoff else None)
        since = max(filter(None, bounds), key=lambda date: start_at(date, tz), default=None)
        if since is None or model.cadence.unit is Unit.WHOLE:
            cells = model_cells.ready
        else:
            first = epoch_of(model.cadence.ceil(start_at(since, tz)))
            cells = (
                IntervalSet.of_pairs([(first, model_cells.ready.boundaries[-1])])
                if model_cells.ready
                else _NOTHING
            )
        model_cells.add(Why.RESTATED, cells & model_cells.ready, f"new definition from {since} on")

    def _gaps(self, name: str, model_cells: ModelCells) -> IntervalSet:
        """Give the required cells that are not ready, and the restated ones that never were."""
        wrong = (
            self.wrong.spread[name] & model_cells.life
        )  # a cutoff has taken older gaps out of it
        missing = (model_cells.required | wrong) - model_cells.ready
        if self.planned.request.launch:  # it named published cells; gaps elsewhere are not meant
            missing = _NOTHING
        if self.planned.models[name].in_order:
            missing = _with_earlier(model_cells, missing)
        if missing and not self._fills(name):
            owner = self.planned.published.models[name].pointer.environment
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
        if not cells or self.planned.request.skip_upstream:
            return
        for upstream, upstream_model in self.planned.upstream_models(name):
            their = self.cells[upstream.name]
            model = self.planned.models[name]
            read = cells_read(
                model.cadence, upstream, upstream_model.cadence, cells, until=self.planned.now
            )
            lacking = (read & their.life) - their.ready - their.cells
            if lacking and upstream_model.in_order:
                lacking = _with_earlier(their, lacking)
            allowed = upstream.name in self.planned.chosen | self.planned.helpers
            if lacking and allowed and self._fills(upstream.name):
                new = self.changes.models[upstream.name].new_version
                why = Why.NEW_SNAPSHOT if new else Why.GAP
                their.add(
                    why,
                    lacking,
                    "recorded empty" if self.planned.request.empty else f"{name} reads it",
                )

    def _waiting(self, name: str) -> None:
        """Leave out cells that read cells which are neither ready nor planned."""
        self._wait_for_others(name)
        model_cells, model = self.cells[name], self.planned.models[name]
        if model.in_order:
            lacking = model_cells.life - model_cells.ready - model_cells.cells
            _leave_out(
                model_cells,
                model,
                onward(lacking, model_cells.life) & model_cells.cells,
                _not_there("earlier cells"),
            )

    def _read_by_published(self) -> CellsByModel:
        """Give the cells that new tables read for cells which are published: these can't be left out."""
        read = CellsByModel()
        for name in reversed(self.planned.graph.order):
            cells, model = read[name], self.planned.models[name]
            if self.changes.models[name].new_version:
                cells |= self.cells[name].cells & self.planned.published.ready(name)
            for upstream, theirs in self.planned.upstream_models(name):
                read |= {
                    upstream.name: cells_read(
                        model.cadence, upstream, theirs.cadence, cells, until=self.planned.now
                    )
                }
        return read

    def _wait_for_rows(self, name: str, read: IntervalSet) -> None:
        """Leave out gaps that wait for rows of a source; the next run fills them once these have come."""
        if self.planned.request.empty:
            return
        model_cells, model = self.cells[name], self.planned.models[name]
        gaps = model_cells.cells - model_cells.ready - self.planned.published.ready(name) - read
        waiting = lacking_in_sources(self.planned.graph, self.view, model, gaps, self.planned.now)
        for source, cells in waiting.items():
            _leave_out(
                model_cells,
                model,
                cells & model_cells.cells,
                f"rows of {source} that have not come",
            )

    def _wait_for_others(self, name: str) -> None:
        model_cells, model = self.cells[name], self.planned.models[name]
        for upstream, upstream_model in self.planned.upstream_models(name):
            cells = model_cells.cells
            if not cells:
                return
            upstream_cells = self.view.ready(upstream.name) | self.cells[upstream.name].cells
            waiting_cells = cells_without_input(
                model.cadence,
                upstream,
                upstream_model.cadence,
                cells,
                upstream_cells,
                until=self.planned.now,
            )
            _leave_out(model_cells, model, waiting_cells, _not_there(f"cells of {upstream.name}"))


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
        f"{count} cell{'s' if count > 1 else ''} left out: {'they read' if count > 1 else 'it reads'} {what}"
    )


def _not_there(cells: str) -> str:
    return f"{cells} that are neither ready nor planned"
