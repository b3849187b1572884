"""The cells that a verb has built or published, for its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.cli.output import say
from backfill_assets.engine.plans.building import built_in
from backfill_assets.intervals.text import counted
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.cli.operating import Operating
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_words import Naming

_LIMIT = 5


def cells_told(at: Operating, plan: Plan, number: int | None) -> dict[str, CellsByModel]:
    """Give the cells that a plan has built, that a publication published, and that differ since.

    Args:
        at: what the verb works with.
        plan: whose batches.
        number: of the publication; None where nothing was published.
    """
    moves = [move for move in at.store.history.moves_of(plan.plan_id) if move.number == number]
    return {
        "built": built_in(at.store, plan),
        "published": CellsByModel({move.model: move.cells for move in moves}),
        "changed": CellsByModel({move.model: move.changed for move in moves}),
    }


def cells_json(naming: Naming, told: Mapping[str, CellsByModel]) -> dict[str, dict[str, list[str]]]:
    """Give them as JSON has them: by model every range, first and last partition key included."""
    return {word: naming.listed(cells) for word, cells in told.items()}


def say_cells(naming: Naming, told: Mapping[str, CellsByModel]) -> None:
    """Say them, a line for each model, with the count last: what is published, and what is only built."""
    published = told.get("published", CellsByModel())
    for name, cells in published.items():
        differ = naming.count(name, told["changed"][name])
        of = counted(naming.count(name, cells), "cell")
        ranges = naming.ranges(name, cells, limit=_LIMIT)
        say(f"published {name}: {ranges}; {differ:,} of {of} differ", indent=2)
    for name, apart in (told.get("built", CellsByModel()) - published).items():
        ranges = naming.ranges(name, apart, limit=_LIMIT)
        say(f"built {name}: {ranges}; {counted(naming.count(name, apart), 'cell')}", indent=2)
