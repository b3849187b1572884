"""Published cells that a person launches by hand: a plan of their own, waiting at its gate.

A protected environment neither refuses such a launch nor publishes it. All runs of one launch serve
one plan: the first run makes it, over everything that the launch targets, and applies it, for Dagster
launches no run that reads cells which a run before it did not publish. Where nothing turns out
different there is no history to change, and the plan is promoted by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.automatic_plan import begun, carried_out
from backfill_assets.engine.batch.table_turn import LONGEST_WAIT
from backfill_assets.engine.plans.making import make_plan
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.plans.refusals import PlanConflictError
from backfill_assets.engine.project.waiting import leased
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.stored_plan import NOT_ENDED, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of a model's published cells in a launch by hand.

    Attributes:
        plan_id: the launch's plan.
        cells: those of the model that it builds again.
        left: those that could not be built.
        promoted: whether the plan is published: nothing was different.
    """

    plan_id: str
    cells: IntervalSet
    left: IntervalSet
    promoted: bool


def published_by_others(run: RunContext, name: str) -> IntervalSet:
    """Give a model's cells that others than this launch have published, where that is protected."""
    if not run.environment.protected:
        return IntervalSet.empty()
    state = run.view().models.get(name)
    if state is None:
        return IntervalSet.empty()
    at = state.pointer
    return state.ready - run.store.versions.built_by(at.version, run.root_id, at.delta_version)


def rebuild_by_hand(
    run: RunContext,
    name: str,
    targets: Mapping[str, IntervalSet],
    why: str = "",
    told: Callable[[str], object] = lambda _: None,
) -> Rebuilt:
    """Build a model's published cells again in the launch's plan.

    Args:
        run: the protected environment; its root id is the launch.
        name: the model that the answer is about.
        targets: by model, the published cells of everything that the launch is about; a model of which
            none is published is selected all the same, with what reads it.
        why: the reason, in words.
        told: called with the plan's id, and with what to do if the run is stopped, in words.

    Raises:
        RequestError: none of the cells can be built again now, or another open plan is at work on them.
    """
    with leased(run, f"launch {run.root_id}", LONGEST_WAIT):
        plan = next(iter(_of_launch(run, why)), None) or _made(run, targets, why)
        planned = plan.model(name)
        cells = IntervalSet.empty() if planned is None else planned.certain
        op = Operation(project=run.own, plan=plan, why=why)
        match op.store.plans.get(plan.plan_id).status:
            case PlanStatus.BUILT | PlanStatus.PROMOTED as status:
                promoted = status is PlanStatus.PROMOTED
                return Rebuilt(plan.plan_id, cells, IntervalSet.empty(), promoted=promoted)
            case _:
                told(_words(plan.plan_id))
                done = _done(op)
                promoted = done.status is PlanStatus.PROMOTED
                return Rebuilt(plan.plan_id, cells, done.left[name], promoted=promoted)


def _words(plan_id: str) -> str:
    return (
        f"published cells are built again in plan {plan_id} of this launch; if the run is stopped, re-execute it or run "
        f"`backfill apply {plan_id}` to go on, or `backfill abandon {plan_id}` to give the plan up"
    )


def _done(op: Operation) -> Outcome:
    """Carry out the launch's plan; a plan that can't be applied is given up."""
    try:
        return carried_out(op, _nothing_differs)
    except PlanConflictError as error:
        abandon_plan(op.project, op.plan, str(error))
        raise RequestError(
            found=f"other work is on the published cells of this launch, nothing was written: {error.listed}",
            do="Apply and promote the other plan, or abandon it, then launch again",
        ) from error


def _made(run: RunContext, targets: Mapping[str, IntervalSet], why: str) -> Plan:
    request = PlanRequest(
        environment=run.environment.name,
        asked_by=run.project.who,
        reason=why,
        launch=run.root_id,
        restate=tuple(
            stretch for name in targets for stretch in _restated(run, name, targets[name])
        ),
        select=tuple(f"{name}+" for name in targets),
        skip_upstream=True,
    )
    plan = make_plan(run.own, request).plan
    if plan.is_empty:  # an empty plan is not kept: the launch would name one that does not exist
        raise RequestError(
            found=f"none of the cells of {', '.join(targets)} can be built again now: they read cells that are "
            "not there, or a cutoff keeps them. What is published stays",
            do=f"fill what they read first: backfill run --select {','.join(f'+{name}' for name in targets)}; "
            "or end the cutoff: backfill plan --lift-cutoff MODEL",
        )
    return plan


def _of_launch(run: RunContext, why: str) -> list[Plan]:
    """Find what the launch has begun, the latest first; no other plan is parsed, however many there are."""
    statuses = (*NOT_ENDED, PlanStatus.PROMOTED)
    stored_plans = run.store.plans.latest(run.environment.name, statuses)
    naming = [stored for stored in stored_plans if run.root_id in stored.content]
    return begun(run.own, naming, lambda request: request.launch == run.root_id, why)


def _restated(run: RunContext, name: str, cells: IntervalSet) -> Iterator[Restatement]:
    model = run.graph.model(name)
    if cells and model.cadence.start is None:
        yield Restatement(name)
        return
    yield from (_stretch(model, interval) for interval in cells)


def _stretch(model: Model, cells: Interval) -> Restatement:
    return Restatement(model.name, cells.start.isoformat(), cells.end.isoformat())


def _nothing_differs(op: Operation) -> str | None:
    """Give the reason to promote a plan that changes nothing."""
    built, published = workspace_name(op.plan_id), op.plan.environment
    differs = any(
        op.store.views.content_at_pin(built, planned.model, planned.cells)
        != op.store.views.content_at_pin(published, planned.model, planned.cells)
        for planned in op.plan.models
    )
    return None if differs else "nothing is different"
