"""What a plan does to what readers see, as a policy asks: gathered from the state, before it is published."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from backfill_assets.planning.review.policy import ModelFacts, PlanFacts
from backfill_assets.snapshots.person import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.review.reviewed import Reviewed
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.planning.plan.plan import ModelPlan

_HOUR = 3600.0


def facts_of(of: Reviewed) -> PlanFacts:
    """Gather what a policy asks of a plan that is built."""
    plan, estimate = of.plan, of.plan.estimate
    priced = estimate is not None and any(estimate.cost)
    models = tuple(_facts(of, planned) for planned in plan.models if planned.moves)
    removed = tuple(ModelFacts(name, removed=True) for name in plan.removed)
    return PlanFacts(
        environment=plan.environment,
        authors=names_in(plan.request.asked_by),
        models=(*models, *removed),
        automatic=of.is_automatic,
        cost=estimate.cost[1] if estimate is not None and priced else None,
        hours=estimate.seconds[1] / _HOUR if estimate is not None else None,
    )


def _facts(of: Reviewed, planned: ModelPlan) -> ModelFacts:
    cells = [cell for cell, (before, _) in of.differing(planned).items() if before is not None]
    return ModelFacts(planned.model, len(cells), _oldest(of, planned.model, cells))


def _oldest(of: Reviewed, model: str, cells: Iterable[Interval]) -> date | None:
    """Give the local date of the first of these cells; None for a model without cells in time."""
    cadence = of.project.loaded.graph.model(model).cadence
    first = min(cells, default=None)
    if first is None or cadence.start is None:
        return None
    return date.fromisoformat(cadence.key(first)[:10])
