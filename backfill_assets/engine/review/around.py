"""What the state says around a plan that has not ended: whom it does not touch, and what it may invalidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.project.holds import holds_of
from backfill_assets.engine.review.results import planned_invalid
from backfill_assets.render.holds import untouched_text
from backfill_assets.render.plan_sections import Texts
from backfill_assets.snapshots.stored_plan import ENDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from backfill_assets.engine.project.asked import Asked
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.state.store import Store


def around_plan(asked: Asked, plan: Plan) -> tuple[Texts, ...]:
    """Give sections on whom a plan does not touch, and what it may invalidate; none of one that has ended."""
    store = asked.store
    if plan.is_empty or store.plans.get(plan.plan_id).status in ENDS:
        return ()
    return (
        Texts("Not touched", "Not touched", untouched(store, plan, asked.project.clock())),
        Texts(
            "May invalidate", "May invalidate", tuple(_invalid(store, plan, asked.naming_of(plan)))
        ),
    )


def untouched(store: Store, plan: Plan, now: datetime) -> tuple[str, ...]:
    """Say which held consumers read models of a plan, and so are not touched by it."""
    models = [*(planned.model for planned in plan.models), *plan.removed]
    holds = holds_of(store, plan.environment, models)
    return tuple(untouched_text(hold, models, now) for hold in holds)


def _invalid(store: Store, plan: Plan, naming: Naming) -> Iterator[str]:
    """Name the registered results that rest on cells which a plan may change."""
    for each in planned_invalid(store, plan):
        cells = naming.in_full(each.result.model, each.cells)
        rerun = "; it has to be computed again before the promotion" if each.result.rerun else ""
        yield f"{each.result.name}, which rests on {each.result.model} {cells}{rerun}."
