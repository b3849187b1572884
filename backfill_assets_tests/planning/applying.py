"""Applying a plan to a picture of the state: every planned cell is built, the plan is promoted.

Every cell turns out different, as far as it may: of a new version only in what the planner says that
its logic, or what it reads, can change; what that is has tests of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.intervals import Interval, IntervalSet
from backfill_assets.models.content import ChangedAt
from backfill_assets.planning.change.changes import changes_of
from backfill_assets.planning.change.planned_graph import planned_graph
from backfill_assets.planning.plan.plan import Build
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.state_view import ModelState, ReadyRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.categorize import DeclarationDifference
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.planning.plan.plan_state import PlanState
    from backfill_assets.snapshots.loaded import Loaded


def applied(plan: Plan, state: PlanState, loaded: Loaded) -> PlanState:
    """Give the state after the promotion."""
    graph, snapshots = loaded.graph, loaded.snapshots
    effects = changes_of(planned_graph(plan.request, graph, state, plan.until, loaded)).effects
    models, counter = dict(state.view.models), state.view.counter
    running = {
        name: snapshot for name, snapshot in state.running.items() if name not in plan.removed
    }
    for planned in plan.models:
        counter += 1
        models[planned.model] = _after(
            planned,
            models.get(planned.model),
            state,
            (graph.models[planned.model], effects.get(planned.model), counter),
        )
        running[planned.model] = snapshots[planned.model]
    for name in plan.removed:
        models.pop(name, None)
    owed = state.view.owed - {model.model: model.cells for model in plan.models}
    view = replace(state.view, models=models, counter=counter, owed=owed)
    return replace(state, view=view, running=running)


def _after(
    planned: ModelPlan,
    before: ModelState | None,
    state: PlanState,
    built: tuple[Model, DeclarationDifference | None, int],
) -> ModelState:
    model, effect, counter = built
    environment = state.view.environment.name
    pointer = Pointer(environment, planned.model, planned.fingerprint, planned.version, counter)
    old = before.runs if before is not None else ()
    held = state.built.get(planned.version)
    stays = old if planned.build is not Build.NEW_VERSION else held.runs if held is not None else ()
    kept = [part for run in stays for part in _outside(run, planned.cells)]
    fresh = stamps_after(model, planned, effect, counter)
    new = [
        ReadyRun(cell, counter, fresh(old, cell), f"b{counter}")
        for cell in model.cadence.cells(planned.cells)
    ]
    return ModelState(pointer, tuple(sorted((*kept, *new), key=lambda run: run.interval)))


def _outside(run: ReadyRun, cells: IntervalSet) -> list[ReadyRun]:
    return [replace(run, interval=each) for each in IntervalSet.of([run.interval]) - cells]


def stamps_after(
    model: Model, planned: ModelPlan, effect: DeclarationDifference | None, counter: int
) -> Callable[[tuple[ReadyRun, ...], Interval], ChangedAt]:
    """Give the stamps of a cell that was built: what can't differ keeps its own."""
    columns = [column.name for column in model.schema]

    def stamps(old: tuple[ReadyRun, ...], cell: Interval) -> ChangedAt:
        was = next((run for run in old if run.interval.contains(cell)), None)
        if was is None or planned.build is not Build.NEW_VERSION or effect is None:
            return ChangedAt(counter, dict.fromkeys(columns, counter))
        if effect.rows or effect.columns is None:
            return ChangedAt(counter, dict.fromkeys(columns, counter))
        kept = {k: v for k, v in was.changed_at.columns.items() if k not in effect.columns}
        return ChangedAt(
            was.changed_at.row_set, {name: kept.get(name, counter) for name in columns}
        )

    return stamps
