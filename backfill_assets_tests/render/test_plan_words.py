"""Cells are named and counted by the cadence of their model, also of one that is declared no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals import Daily
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.render.plan_words import asked_text, naming_of
from backfill_assets_tests.builders import a_graph, a_model, days

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence


def test_the_state_is_asked_once_for_each_model_that_is_declared_no_more():
    asked: list[str] = []

    def past(model: str) -> Cadence | None:
        asked.append(model)
        return Daily() if model == "web.gone" else None

    naming = naming_of(a_graph(a_model()), past)

    assert [naming.count("web.gone", days(1, 2, 3)) for _ in range(3)] == [3, 3, 3]
    assert [naming.count("web.never", days(1, 2, 3)) for _ in range(3)] == [1, 1, 1]
    assert naming.in_full("web.visits", days(1)) == "2024-01-01"
    assert asked == ["web.gone", "web.never"]


def test_of_a_plan_that_late_data_asked_for_the_models_with_late_cells_are_named():
    late = (("web.visits", days(1)), ("web.daily", days(1, 2)))
    names = ("web.costs", "web.daily", "web.visits")
    request = PlanRequest(environment="prod", select=names, skip_upstream=True, late=late)

    assert asked_text(request) == "late cells of web.visits, web.daily"
