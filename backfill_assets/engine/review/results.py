"""Registered results: what each rests on, which a plan invalidates, and which have to be computed again before it."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

from backfill_assets.engine.project.naming import plan_naming, running_naming
from backfill_assets.engine.review.number_history import RecordedCells, moves_read, steps_of
from backfill_assets.engine.review.reviewed import refuse_unbuilt
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.review.answers import built_at
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.result import Invalidated, Result
from backfill_assets.snapshots.stored_plan import ENDS, PlanStatus

if TYPE_CHECKING:
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.review.reviewed import BuiltPlan
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.state.store import Store

_PUBLISHED = frozenset(ENDS) - {PlanStatus.ABANDONED}


def register_result(
    project: Project,
    environment: str,
    wanted: tuple[str, str, IntervalSet],
    plan_id: str,
    reason: str,
    *,
    rerun: bool,
) -> Result:
    """Register a result: what it has used is what is published now, or what a built plan would publish.

    Args:
        project: who registers it.
        environment: whose publication it used.
        wanted: its name, the model, and the cells.
        plan_id: the built plan that it was computed on; empty: what is published.
        reason: what it found, or who signed it off.
        rerun: whether it has to be computed again before a plan that invalidates it is promoted. One that has
            to, and is computed on a plan, has to be again before the next one, too.

    Raises:
        RequestError: it has no name, some of the cells are not published, or the plan is not built, or is one
            of another environment.
    """
    name, model, cells = wanted
    if not name.strip():
        raise RequestError(
            found="a result without a name", expected="the name that people use for it"
        )
    read = environment
    if plan_id:
        stored = project.store.plans.get(plan_id)
        refuse_unbuilt(stored)
        if stored.environment != environment:
            raise RequestError(
                found=f"plan {plan_id} is one of {stored.environment}, and the result one of {environment}",
                do=f"give --env {stored.environment}",
            )
        read = workspace_name(plan_id)
        rerun = rerun or any(
            (each.name, each.model) == (name, model) and each.rerun
            for each in current_results(project.store, environment)
        )
    view = project.store.views.of(read)
    if lacking := cells - view.ready(model):
        named = running_naming(project, read).ranges(model, lacking)
        raise RequestError(
            found=f"{plan_id or environment} has no data of {model} in {named}",
            expected="cells that are published, or built in the plan",
        )
    pointer = view.models[model].pointer
    result = Result(
        name=name, environment=environment, model=model, plan_id=plan_id, cells=cells,
        version=pointer.version, delta_version=pointer.delta_version, rerun=rerun,
        who=project.who, at=project.clock(), reason=reason,
    )  # fmt: skip
    project.store.results.register(result)
    return result


def planned_invalid(store: Store, plan: Plan) -> tuple[Invalidated, ...]:
    """List the results that a plan may invalidate, as far as can be said before it is built."""
    cells = [(each.model, each.cells) for each in plan.models]
    view = store.views.of(plan.environment) if plan.removed else None
    gone = [(name, view.ready(name)) for name in plan.removed] if view else []
    return invalid_results(store, plan.environment, plan.plan_id, CellsByModel.of((*cells, *gone)))


def invalidated(of: BuiltPlan) -> tuple[Invalidated, ...]:
    """List the results that a plan invalidates as it is built: a cell that they have used holds something else."""
    changed = CellsByModel.of(
        (planned.model, IntervalSet.of(of.differing(planned))) for planned in of.plan.models
    )
    return invalid_results(of.store, of.plan.environment, of.plan.plan_id, changed)


def results_awaited(of: BuiltPlan) -> tuple[str, ...]:
    """Say which results have to be computed again before a plan is promoted, a clause each."""
    if not any(each.rerun for each in of.store.results.of_environment(of.plan.environment)):
        return ()
    naming = plan_naming(of.project, of.plan)
    return tuple(
        f"result '{each.result.name}' rests on {each.result.model} {naming.ranges(each.result.model, each.cells, 5)} and has to be computed again on the "
        f"plan: `backfill results add {shlex.quote(each.result.name)} {each.result.model} CELLS --plan {of.plan.plan_id}`"
        for each in invalidated(of)
        if each.result.rerun and not each.again
    )


def current_results(store: Store, environment: str, besides: str = "") -> tuple[Result, ...]:
    """Read the last registration of each result, by name and model: on what is published, or on a plan that was.

    What was computed on a plan that was abandoned is none: it was never published.

    Args:
        store: the state.
        environment: whose publication they use.
        besides: the plan whose own are left out; empty: none.
    """
    latest = dict[tuple[str, str], Result]()
    for row in sorted(store.results.of_environment(environment), key=lambda row: row.at):
        if row.plan_id and row.plan_id == besides:
            continue
        if not row.plan_id or store.plans.get(row.plan_id).status in _PUBLISHED:
            latest[row.name, row.model] = row
    return tuple(latest[key] for key in sorted(latest))


def changed_since(store: Store, graph: Graph, result: Result) -> IntervalSet:
    """Give the cells that a result has used and that were published otherwise since, or are not any more.

    Publications have recorded what they changed; what a run has changed in place is compared.

    Args:
        store: the state.
        graph: the models that are declared.
        result: as it was registered.
    """
    if result.model not in store.environments.pointers(result.environment):
        return result.cells
    model, own = graph.models.get(result.model), (result.plan_id, PublicationKind.PROMOTE)
    cells = () if model is None else tuple(model.cadence.cells(result.cells))
    recorded = RecordedCells(store.reading(), result.model, cells)
    moves = moves_read(
        recorded.store, store.history.moves_in, result.environment, result.model, recorded.batches
    )
    published = IntervalSet.union_all(
        move.changed & result.cells
        for move in moves
        if move.at >= result.at and (move.plan_id, move.kind) != own
    )
    return published | _changed_in_place(recorded, result)


def _changed_in_place(recorded: RecordedCells, result: Result) -> IntervalSet:
    """Give the cells of a result in which a batch has put something else since; none of a model that is not declared."""
    steps = steps_of(recorded.store, result.environment, recorded)
    return IntervalSet.of(
        cell
        for before, step in pairwise(steps)
        if step.batch_id is not None and step.at >= result.at
        for cell, held in step.held.items()
        if (was := before.held.get(cell)) is not None and was.content != held.content
    )


def invalid_results(
    store: Store, environment: str, plan_id: str, changed: CellsByModel
) -> tuple[Invalidated, ...]:
    """List the results that rest on cells which a plan changes; one computed again on all of them, as built, says so."""
    built = built_at(store.plans.events(plan_id))
    again = {
        (row.name, row.model): row.cells - _carried_over_since(store, row)
        for row in store.results.of_environment(environment)
        if row.plan_id == plan_id and built is not None and row.at >= built
    }
    invalid = (
        (row, row.cells & changed[row.model], again.get((row.name, row.model)))
        for row in current_results(store, environment, plan_id)
    )
    return tuple(
        Invalidated(row, cells, used is not None and not cells - used)
        for row, cells, used in invalid
        if cells
    )


def _carried_over_since(store: Store, result: Result) -> IntervalSet:
    """Give the cells that hold something else in a plan's table than when a result was computed on them."""
    now = store.environments.own_pointers(workspace_name(result.plan_id)).get(result.model)
    if now is None or now.version != result.version:
        return IntervalSet.empty()
    used, found = (
        store.versions.held_contents(result.version, result.cells, at)
        for at in (result.delta_version, now.delta_version)
    )
    return IntervalSet.of(cell for cell in used if used[cell] != found.get(cell))
