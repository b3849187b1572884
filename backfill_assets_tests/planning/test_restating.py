"""What may be declared wrong, and how."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import IntervalSet
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.restating import restated_cells
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import (
    EVENTS,
    FIRST,
    a_graph,
    a_model,
    a_run,
    a_source,
    a_view,
    a_whole,
    day,
)

if TYPE_CHECKING:
    from backfill_assets.models.cells_by_model import CellsByModel

NOW = FIRST + timedelta(days=8)


def test_a_slice_of_a_restated_source_is_refused_since_no_model_is_named_that_it_holds_for():
    graph = a_graph(a_model())
    view = a_view({name: [a_run(day(1, 8), 1)] for name in graph.order})
    request = PlanRequest(environment=PROD, restate=(Restatement(EVENTS),), where="cost > 1")

    with pytest.raises(RequestError, match=r"'web\.events' is a source"):
        build_plan(request, graph, PlanState(view=view, running=snapshots_of(graph)), NOW)


def test_a_restatement_reaches_the_cells_that_read_it_in_a_new_table_and_no_others():
    dimension = a_whole("web.costs_by_id")
    reader = a_model(
        "web.reader", upstreams=["web.visits", Upstream("web.costs_by_id", reopens=Reopens.NEVER)]
    )
    graph = a_graph(a_model(), dimension, reader, a_model("web.aside"))
    view = a_view({name: [a_run(day(1, 8), 1)] for name in graph.order})

    def reached(*restated: Restatement) -> CellsByModel:
        request = PlanRequest(environment=PROD, restate=restated)
        plan = build_plan(request, graph, PlanState(view=view, running=snapshots_of(graph)), NOW)
        return restated_cells(plan, graph, view)

    days = Restatement("web.visits", "2024-01-02", "2024-01-03")
    assert reached(days) == dict.fromkeys(("web.visits", "web.reader"), IntervalSet.of([day(2, 2)]))
    whole = reached(Restatement("web.costs_by_id"))
    assert whole.keys() == {"web.costs_by_id", "web.reader"}
    assert day(1) in whole["web.reader"]
    assert day(7) in whole["web.reader"]


@pytest.mark.parametrize(
    ("first", "last"),
    [("2024-01-02", "2024-01-03"), ("2024-01-02T00:00:00Z", "2024-01-04T00:00:00Z")],
)
def test_a_named_range_of_a_table_without_cells_reaches_its_readers_however_it_is_written(
    first: str, last: str
):
    reader = a_model("web.reader", upstreams=["web.visits", Upstream("web.costs_by_id")])
    graph = a_graph(a_model(), a_whole("web.costs_by_id"), reader)
    view = a_view({name: [a_run(day(1, 8), 1)] for name in graph.order})
    request = PlanRequest(environment=PROD, restate=(Restatement("web.costs_by_id", first, last),))

    plan = build_plan(request, graph, PlanState(view=view, running=snapshots_of(graph)), NOW)

    planned = plan.model("web.reader")
    assert planned is not None
    assert planned.cells == IntervalSet.of([day(2, 2)])


def test_a_named_range_of_a_source_reaches_the_same_cells_through_a_table_without_cells():
    reader = a_model("web.reader", upstreams=["web.clicks", "web.costs_by_id"])
    sources = [a_source(), a_source("web.clicks")]
    graph = a_graph(a_whole("web.costs_by_id"), reader, sources=sources)
    view = a_view({name: [a_run(day(1, 8), 1)] for name in graph.order})
    asked = Restatement(EVENTS, "2024-01-02", "2024-01-03")
    request = PlanRequest(environment=PROD, restate=(asked,))

    plan = build_plan(request, graph, PlanState(view=view, running=snapshots_of(graph)), NOW)

    planned = plan.model("web.reader")
    assert planned is not None
    assert planned.cells == IntervalSet.of([day(2, 2)])
