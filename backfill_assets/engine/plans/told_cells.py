"""The cells that a verb of a plan has built or published, for its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.engine.plans.building import built_in
from backfill_assets.engine.project.naming import running_naming
from backfill_assets.engine.review.end_facts import whole_lost
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.asked import Asked
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_words import Naming


def cells_told(asked: Asked, plan: Plan, number: int | None) -> dict[str, CellsByModel]:
    """Give the cells that a plan has built, that a publication published, that differ since, and that are gone.

    Args:
        asked: the project.
        plan: whose batches.
        number: of the publication; None where nothing was published.
    """
    moves = [move for move in asked.store.history.moves_of(plan.plan_id) if move.number == number]
    cells = CellsByModel({move.model: move.cells for move in moves})
    lost = cells - _readable(asked, plan) if _is_latest(asked, plan, number) else CellsByModel()
    return {
        "built": built_in(asked.store, plan),
        "published": cells - lost,
        "changed": CellsByModel({move.model: move.changed for move in moves}) - lost,
        "gone": CellsByModel(
            {move.model: whole_lost(asked.store, move, lost[move.model]) for move in moves}
        ),
    }


def _readable(asked: Asked, plan: Plan) -> CellsByModel:
    """Give the cells that readers of a plan's environment read now."""
    view = asked.store.views.of(plan.environment)
    return CellsByModel({name: view.ready(name) for name in view.models})


def _is_latest(asked: Asked, plan: Plan, number: int | None) -> bool:
    """Whether nothing was published after it: what readers have lost since is not known of an earlier one."""
    numbers = {move.number for move in asked.store.history.moves_in(plan.environment)}
    return number is not None and number == max(numbers, default=None)


def cells_json(naming: Naming, told: Mapping[str, CellsByModel]) -> dict[str, dict[str, list[str]]]:
    """Give them as JSON has them: by model every range, first and last partition key included."""
    return {word: naming.listed(cells) for word, cells in told.items()}


def back_told(asked: Asked, plan: Plan, back: Outcome) -> dict[str, Any]:
    """Give what taking a plan back has published, as plain values: by model every range, and the models that readers have lost."""
    naming = running_naming(asked.project, plan.environment)
    told = cells_json(naming, cells_told(asked, plan, back.number))
    gone = [
        move.model
        for move in asked.store.history.moves_of(plan.plan_id)
        if move.number == back.number and not move.new
    ]
    still_read = asked.store.environments.pointers(plan.environment)  # dev follows prod again
    return {
        "plan_id": plan.plan_id,
        "environment": plan.environment,
        "number": back.number,
        "models": [*(planned.model for planned in plan.models), *plan.removed],
        "carried": naming.by_model(back.carried),
        "published": told["published"],
        "changed": told["changed"],
        "gone": told["gone"],
        "removed": [name for name in gone if name not in still_read],
    }
