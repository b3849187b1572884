"""Find the open plans and live batches that overlap with a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Build, InFlight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.planning.plan.plan_state import PlanState


def in_flight(models: Iterable[ModelPlan], state: PlanState) -> tuple[InFlight, ...]:
    """Name plans and batches that overlap with a plan.

    Two plans of one environment overlap where they build the same cells of a model, or where one of
    them moves the model to another table; plans of different environments overlap only where both
    would build the same new table.
    """
    return tuple(overlap for model in models for overlap in _of_model(model, state))


def _of_model(model: ModelPlan, state: PlanState) -> Iterator[InFlight]:
    for plan in state.open_plans:
        theirs = plan.model(model.model)
        if theirs is None or not _collide(model, theirs, plan, state):
            continue
        cells = model.cells & theirs.cells
        whose = "" if plan.environment == state.view.environment.name else f" of {plan.environment}"
        yield InFlight(model.model, cells, f"plan {plan.plan_id}{whose}", blocks=True)
    if claimed := state.view.claimed[model.model] & model.cells:
        yield InFlight(model.model, claimed, "a batch that runs now", blocks=False)


def _collide(model: ModelPlan, theirs: ModelPlan, plan: Plan, state: PlanState) -> bool:
    both = (model.build, theirs.build)
    if plan.environment != state.view.environment.name:
        return both == (Build.NEW_VERSION, Build.NEW_VERSION) and model.version == theirs.version
    if Build.NEW_VERSION in both:
        return True
    return bool(model.cells & theirs.cells)
