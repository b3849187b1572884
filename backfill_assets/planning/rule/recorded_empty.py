"""Refuse to record published cells as empty, without computing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import ranges_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.snapshots.state_view import StateView


def refuse_blank_history(graph: Graph, view: StateView, models: Iterable[ModelPlan]) -> None:
    """Refuse to record cells as empty that the environment publishes, its own or those it follows.

    Raises:
        RequestError: some are.
    """
    for planned in models:
        blank = planned.certain & view.ready(planned.model)
        if blank:
            cadence = graph.model(planned.model).cadence
            raise RequestError(
                found=f"--empty would blank {cadence.count(blank)} published cells of "
                f"'{planned.model}': {ranges_text(cadence, blank)}",
                do="It is for cells that were never published: leave these out (--select; --start "
                "and --end, where no new table must hold them). To keep their old rows under a "
                "changed model use --forward-only, or --cutoff DATE --reason TEXT, instead of "
                "--empty",
            )
