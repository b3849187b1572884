"""Build a plan from a request, the loaded models and the state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.models.cells import cells_read
from backfill_assets.planning.change.changes import changes_of
from backfill_assets.planning.change.kept_rows import kept_rows, lacking_values
from backfill_assets.planning.change.model_diff import model_diff
from backfill_assets.planning.change.planned_graph import planned_graph
from backfill_assets.planning.change.strategies import RISK, SIGNAL, propose
from backfill_assets.planning.plan.batch_size import batch_size
from backfill_assets.planning.plan.canary import with_canaries
from backfill_assets.planning.plan.cell_work import cell_work
from backfill_assets.planning.plan.in_flight import in_flight
from backfill_assets.planning.plan.plan import Build, Change, ModelPlan, Plan, Why
from backfill_assets.planning.plan.plan_batches import planned_batches
from backfill_assets.planning.plan.plan_json import identified
from backfill_assets.planning.plan.planned_contract import planned_contract
from backfill_assets.planning.plan.planned_reads import planned_reads
from backfill_assets.planning.plan.request import Category, KeptRows, Strategy
from backfill_assets.planning.plan.request_rules import (
    check_request,
    refuse_blank_history,
    refuse_idle_cutoff,
)
from backfill_assets.planning.plan.smaller_window import read_from, smaller_window
from backfill_assets.planning.plan.windows import windows_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.change.model_change import Changes, ModelChange
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.model_cells import ModelCells
    from backfill_assets.planning.plan.plan_state import PlanState
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.planning.review.contract import Expectation
    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.snapshots.loaded import Loaded


def build_plan(
    request: PlanRequest,
    graph: Graph,
    state: PlanState,
    now: datetime,
    loaded: Loaded | None = None,
) -> Plan:
    """Build the plan for a request and write nothing; an empty plan needs no work.

    Args:
        request: what a person asks.
        graph: the loaded models and sources.
        state: the snapshots that the environment runs, and its ready cells.
        now: the instant that history ends at (UTC).
        loaded: values of the loaded models that were computed before.

    Raises:
        RequestError: a category or strategy is given for no model.
        RequestError: published cells would be recorded as empty.
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    check_request(request, now)
    planned = planned_graph(request, graph, state, now, loaded)
    for name in _named(request):
        planned.graph.model(name)
    _refuse_unset(request, state)
    windows = windows_of(planned)
    changes = changes_of(planned)
    cells = cell_work(planned, changes, windows)
    planner = _Planner(planned, changes, cells)
    models = planner.models()
    refuse_idle_cutoff(request, models)
    if request.empty:
        refuse_blank_history(planned.graph, state.view, models)
    built = {model.model for model in models if model.cells}
    publishes = bool(planned.removed) or any(model.build is not Build.GAP_FILL for model in models)
    environment = state.view.environment
    plan = Plan(
        plan_id="",
        request=request,
        environment=environment.name,
        protected=environment.protected,
        created_at=now,
        expires_at=now + timedelta(days=state.plan_days + request.dual_run_days),
        until=now,
        seen=state.view.counter,
        models=models,
        removed=planned.removed,
        untouched=tuple(reader for reader in changes.untouched if reader.model not in built),
        in_flight=in_flight(models, state),
        gates=_gates(request, environment, publishes=publishes),
        rollback=_rollback(models, publishes=publishes),
        notes=planner.notes(models),
    )
    plan = with_canaries(plan, planned.graph, state.rows) if request.canary else plan
    return identified(replace(plan, contract=planner.contract(plan)))


@dataclass(frozen=True, slots=True)
class _Planner:
    """The findings about a request, from which the plan is written model by model."""

    planned: PlannedGraph
    changes: Changes
    cells: Mapping[str, ModelCells]
    plans: dict[str, ModelPlan] = field(default_factory=dict[str, ModelPlan])
    moved: dict[str, bool] = field(default_factory=dict[str, bool])

    def models(self) -> tuple[ModelPlan, ...]:
        """Describe what the plan does to each model that it concerns, upstream first."""
        graph = self.planned.graph
        since = read_from(graph, self.planned.state.furthest_read, self.planned.now)
        for name in graph.order:
            if self._stays(name) and not self.cells[name].work:
                continue
            smaller = smaller_window(
                graph,
                name,
                self.changes.models[name].change,
                self.cells[name].work,
                since.get(name),
            )
            self.plans[name] = self._model(name, smaller)
        split = {
            name: (model.certain, model.cells - model.certain) for name, model in self.plans.items()
        }
        sizes = {
            name: batch_size(graph, self.planned.published, graph.models[name]) for name in split
        }
        cut = planned_batches(graph, split, {name: size.cells for name, size in sizes.items()})
        return tuple(
            replace(model, batches=cut[name], batch_size=sizes[name] if cut[name] else None)
            for name, model in self.plans.items()
        )

    def _model(self, name: str, smaller: str | None) -> ModelPlan:
        change, model_cells = self.changes.models[name], self.cells[name]
        model_state = self.planned.published.models.get(name)
        before = self.planned.state.running.get(name)
        cells = model_cells.cells
        cut = (model_cells.cutoff.words(name),) if model_cells.cutoff else ()
        tolerant = self._tolerances(name) if cells else ()
        notes = (
            *change.notes,
            *cut,
            *model_cells.notes,
            *tolerant,
            *((smaller,) if smaller else ()),
        )
        build = self._build(name, change, model_cells)
        strategy = self._strategy(name, change, build, model_cells)
        kept, lacking = self._kept_rows(name, change)
        return ModelPlan(
            model=name,
            change=change.change,
            category=change.category,
            category_reason=change.reason,
            decided_by=change.decided_by,
            diff=self._diff(name, change),
            build=build,
            strategy=strategy,
            risk=RISK[strategy] if strategy else "",
            signal=SIGNAL[strategy] if strategy else "",
            fingerprint=change.fingerprint,
            version=change.version,
            old_fingerprint=model_state.pointer.fingerprint if model_state and before else "",
            old_version=model_state.pointer.version if model_state and before else "",
            old_delta_version=model_state.pointer.delta_version if model_state and before else -1,
            loaded=self.planned.loaded.get(name, ""),
            work=tuple(model_cells.work),
            kept=(model_cells.required & model_cells.ready) - cells,
            waiting=model_cells.waiting - cells,
            reads=planned_reads(self.planned, self.planned.models[name], cells, self.plans),
            kept_before=model_cells.cutoff,
            kept_rows=kept,
            notes=(*notes, *((lacking,) if lacking else ())),
        )

    def _tolerances(self, name: str) -> tuple[str, ...]:
        """List the tolerances within which differences are published without rebuilding readers."""
        columns = [
            f"{column.tolerance:g} on {column.name}"
            for column in self.planned.models[name].schema
            if column.tolerance is not None
        ]
        if not columns:
            return ()
        note = f"tolerance {', '.join(columns)}: smaller differences are published but reopen no reader"
        return (note,)

    def _kept_rows(self, name: str, change: ModelChange) -> tuple[KeptRows | None, str | None]:
        """Decide what becomes of rows that only history has, and note where that will fail."""
        before, new = self.planned.before.get(name), self.planned.models[name]
        old = None if before is None else before.model
        published = self.planned.published.ready(name)
        choice = kept_rows(self.planned.request.kept_rows, change, (old, new), published)
        if old is None or choice is not KeptRows.CARRY:
            return choice, None
        return choice, lacking_values(old, new)

    def _strategy(
        self, name: str, change: ModelChange, build: Build, model_cells: ModelCells
    ) -> Strategy | None:
        if self.planned.request.empty or (build is Build.IN_PLACE and not model_cells.cells):
            return None  # no cell is computed, so no published cell changes
        return propose(
            build=build,
            change=change.change,
            category=change.category,
            # Only a new table can be an enrichment.
            inputs_changed=build is Build.NEW_VERSION and self._inputs_changed(name),
            asked=dict(self.planned.request.strategies).get(name),
        )

    def _inputs_changed(self, name: str) -> bool:
        """Whether a model is restated, owed or stale where it is published now, or reads one that is built again or loses cells."""
        if name not in self.moved:
            self.moved[name] = self._is_stale(name) or any(
                self.changes.models[up.name].lost
                or (self.plans[up.name].cells and self._inputs_changed(up.name))
                for up, _ in self.planned.upstream_models(name)
                if up.name in self.plans
            )
        return self.moved[name]

    def _is_stale(self, name: str) -> bool:
        view = self.planned.published
        if self.planned.request.restate or name in view.owed:
            return True
        if name not in view.models:
            return False
        return bool(self.planned.stale(name, view))

    def _diff(self, name: str, change: ModelChange) -> str:
        if change.change not in (Change.ADDED, Change.MODIFIED):
            return ""
        before = self.planned.before.get(name)
        new = self.planned.snapshots[name].model
        return model_diff(None if before is None else before.model, new)

    def _build(self, name: str, change: ModelChange, model_cells: ModelCells) -> Build:
        if change.new_version:
            return Build.NEW_VERSION
        if not model_cells.work:
            forward = change.category is Category.FORWARD_ONLY and change.change is Change.MODIFIED
            return Build.IN_PLACE if forward else Build.POINTER
        only_gaps = all(part.why is Why.GAP for part in model_cells.work)
        if self._stays(name) and only_gaps and not self._reads_workspace(name, model_cells.cells):
            return Build.GAP_FILL
        return Build.IN_PLACE

    def _stays(self, name: str) -> bool:
        """Whether a model is the same after the promotion, but for its cells.

        One whose cutoff ends is not: its environment keeps the cutoff until the promotion, and
        fills no gap before it.
        """
        unchanged = self.changes.models[name].change is Change.UNCHANGED
        return unchanged and name not in self.planned.request.lift_cutoffs

    def _reads_workspace(self, name: str, cells: IntervalSet) -> bool:
        """Whether the cells read something that the plan itself builds in its workspace."""
        model = self.planned.models[name]
        for up in model.reads:
            upstream_plan = self.plans.get(up.name)
            if upstream_plan is None or upstream_plan.build is Build.GAP_FILL:
                continue
            cadence = self.planned.models[up.name].cadence
            read = cells_read(model.cadence, up, cadence, cells, until=self.planned.now)
            if read & upstream_plan.cells:
                return True
        return False

    def notes(self, models: tuple[ModelPlan, ...]) -> tuple[str, ...]:
        """Write the notes on models that the plan leaves alone, and on the plan as a whole."""
        planned = {model.model for model in models}
        notes = [
            f"{name}: {note}"
            for name in self.planned.graph.order
            if name not in planned and self.cells[name].leaves_out
            for note in self.cells[name].notes
        ]
        request, sources = self.planned.request, self.planned.graph.sources
        notes += [
            f"the range of {restatement.name} is meant in its own zone, {sources[restatement.name].cadence.tz}"
            for restatement in request.restate
            if restatement.name in sources
            and (restatement.start or restatement.end or request.start or request.end)
        ]
        notes += self._unselected_readers()
        notes += self._not_due(planned)
        notes += self._cutoffs(planned)
        if request.restate_all_snapshots:
            notes.append(
                "the restated intervals become owed in every version; other environments go on "
                "reading what they read until a plan of their own is promoted"
            )
        return tuple(notes)

    def _not_due(self, planned: set[str]) -> list[str]:
        """Name what is restated over a range in which no cell is due, so that nothing follows from it."""
        graph, restate = self.planned.graph, self.planned.request.restate
        return [
            f"nothing follows from restating {restatement.name}: no cell that is due lies in the named range"
            for restatement in restate
            if not any(
                name in planned or self.cells[name].leaves_out or self.cells[name].cutoff
                for name in (restatement.name, *graph.readers(restatement.name))
                if name in self.planned.chosen
            )
        ]

    def _unselected_readers(self) -> list[str]:
        """Name the models that read something restated, and that the selection leaves out."""
        graph, notes = self.planned.graph, list[str]()
        restated = (restatement.name for restatement in self.planned.request.restate)
        for name in dict.fromkeys(restated):
            left_out = [each for each in graph.readers(name) if each not in self.planned.chosen]
            if left_out:
                notes.append(
                    f"not selected, and left as they are: {', '.join(left_out)}, which read the restated {name}"
                )
        return notes

    def contract(self, plan: Plan) -> tuple[Expectation, ...]:
        """Say what the plan is expected to change; nothing is proved where inputs have changed, too."""
        before = {name: snapshot.model for name, snapshot in self.planned.before.items()}
        after = {name: self.planned.models[name] for name in self.planned.graph.order}
        proving = {
            name: effect
            for name, effect in self.changes.effects.items()
            if name in self.plans and not self._inputs_changed(name)
        }
        return planned_contract(plan, before, after, proving)

    def _cutoffs(self, planned: set[str]) -> list[str]:
        """Name the cutoffs that leave out restated cells, or cells that would need work."""
        view, graph = self.planned.published, self.planned.graph
        names = [restatement.name for restatement in self.planned.request.restate]
        concerned = {
            *names,
            *(each for name in names if name in graph.sources for each in graph.readers(name)),
        }
        notes: list[str] = []
        for name, cutoff in view.cutoffs.items():
            if name in self.planned.request.lift_cutoffs or name not in graph.models:
                continue
            kept = self.planned.work(name, view).kept
            text = f"{name}: {cutoff.words(name)}"
            if kept:
                cells = ranges_text(graph.models[name].cadence, kept)
                notes.append(f"{text}; left out, though they would need work without it: {cells}")
            elif name in concerned and name not in planned:
                notes.append(text)
        return notes


def _named(request: PlanRequest) -> tuple[str, ...]:
    """Name the models that a person decides something about."""
    decided = (*dict(request.categories), *dict(request.strategies), *request.lift_cutoffs)
    return (*decided, *dict(request.expect))


def _refuse_unset(request: PlanRequest, state: PlanState) -> None:
    """Refuse to lift a cutoff that is not there."""
    for name in request.lift_cutoffs:
        if name not in state.view.cutoffs:
            models = ", ".join(sorted(state.view.cutoffs)) or "none"
            problem = f"--lift-cutoff {name}: no cutoff of it is in force in {request.environment}"
            raise RequestError(found=problem, do=f"models with one: {models}")


def _gates(request: PlanRequest, environment: Environment, *, publishes: bool) -> tuple[str, ...]:
    """List what must happen before it is published; late data inside of its windows needs no approval."""
    if not (environment.protected and publishes) or request.late:
        return ()
    days, authoritative = request.dual_run_days, f"{environment.name}'s own cells are authoritative"
    beside = (f"a dual run of {counted(days, 'day')}, in which {authoritative}",) if days else ()
    return (*beside, "explicit promote")


def _rollback(models: tuple[ModelPlan, ...], *, publishes: bool) -> str:
    """Say how to go back after the promotion."""
    if not publishes:
        return "nothing that was published changes"
    copied = [model for model in models if model.build is Build.IN_PLACE and model.cells]
    moved = [model for model in models if model.build in (Build.NEW_VERSION, Build.POINTER)]
    ways: list[str] = []
    if moved or not copied:
        ways.append("pointers move back at once, no data moves")
    if copied:
        ways.append("changed cells are brought back in one commit per model")
    return "; ".join(ways)
