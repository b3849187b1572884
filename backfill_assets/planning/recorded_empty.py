"""Refuse to record published cells as empty, without computing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.text import ranges_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan import ModelPlan
    from backfill_assets.snapshots.state_view import StateView


class BlankHistoryError(BackfillAssetsError):
    """Recording cells as empty would take published rows from their readers."""

    def __init__(self, model: str, count: int, ranges: str) -> None:
        self.model, self.count, self.ranges = model, count, ranges
        super().__init__(
            f"--empty would blank {count} published cells of '{model}': {ranges}. It is for cells "
            "that nobody has published: leave these out (--select; --start and --end, where no new "
            "table must hold them). To keep their old rows under a changed model use --forward-only, "
            "or --cutoff DATE --reason TEXT, instead of --empty"
        )


def refuse_blank_history(graph: Graph, view: StateView, models: Iterable[ModelPlan]) -> None:
    """Refuse to record cells as empty that the environment publishes, its own or those it follows.

    Raises:
        BlankHistoryError: some are.
    """
    for one in models:
        blank = one.certain & view.ready(one.model)
        if blank:
            cadence = graph.model(one.model).cadence
            raise BlankHistoryError(one.model, cadence.count(blank), ranges_text(cadence, blank))
