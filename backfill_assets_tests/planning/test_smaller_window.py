"""How far back anybody reads, from what consumers declare."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backfill_assets.intervals import Daily
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.graph import build_graph
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.smaller_window import furthest_read
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import a_model, a_run, a_source, a_view, a_whole, days

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan

NOW = datetime(2024, 1, 20, 15, tzinfo=UTC)
VISITS, OTHERS, WHOLE = "web.visits", "web.others", "web.whole"


def read_by(*reads: Reading, end: str | None = None, tz: str = "UTC") -> Graph:
    """Two daily models and a whole one, each read by a consumer of its own."""
    daily = Daily(start="2024-01-01", end=end, tz=tz)
    models = (a_model(VISITS, cadence=daily), a_model(OTHERS), a_whole(WHOLE))
    consumers = [
        Consumer(name=f"report {number}", kind="dashboard", owner="team:web", reads=[reading])
        for number, reading in enumerate(reads)
    ]
    return build_graph(models, [a_source()], consumers)


def test_the_consumer_that_reads_furthest_decides():
    graph = read_by(Reading(VISITS, days_back=3), Reading(VISITS, days_back=7))

    assert furthest_read(graph, NOW) == {VISITS: "2024-01-13"}


def test_days_are_those_of_the_model():
    graph = read_by(Reading(VISITS, days_back=3), tz="Asia/Tokyo")

    assert furthest_read(graph, NOW) == {VISITS: "2024-01-18"}


def test_of_a_history_that_has_ended_the_days_are_counted_from_its_end():
    graph = read_by(Reading(VISITS, days_back=3), end="2024-01-10")

    assert furthest_read(graph, NOW) == {VISITS: "2024-01-08"}


def test_who_reads_all_of_history_reads_from_its_start():
    graph = read_by(Reading(VISITS), Reading(OTHERS, days_back=400), Reading(WHOLE, days_back=3))

    assert furthest_read(graph, NOW) == {VISITS: "2024-01-01", OTHERS: "2024-01-01"}


BEFORE = "no declared consumer reads cells before 2024-01-15"


def planned(graph: Graph, request: PlanRequest, *, ready: bool) -> Plan:
    runs = [a_run(cell, 3) for cell in Daily(start="2024-01-01").cells(days(*range(1, 20)))]
    view = a_view({VISITS: runs, OTHERS: runs} if ready else {})
    state = PlanState(
        view=view,
        running=snapshots_of(graph) if ready else {},
        furthest_read=furthest_read(graph, NOW),
    )
    return build_plan(request, graph, state, NOW)


def notes(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {model.model: model.notes for model in plan.models if model.notes}


def test_the_first_fill_of_a_model_is_proposed_from_where_its_consumers_read():
    graph = read_by(Reading(VISITS, days_back=5), Reading(OTHERS))

    assert notes(planned(graph, PlanRequest(environment="prod"), ready=False)) == {
        VISITS: (f"{BEFORE}: with --start 2024-01-15 5 of 19 cells are built",)
    }


def test_of_a_restatement_only_the_smaller_range_is_named():
    graph = read_by(Reading(VISITS, days_back=5))
    asked = PlanRequest(environment="prod", restate=(Restatement(VISITS),))

    assert notes(planned(graph, asked, ready=True)) == {
        VISITS: (f"{BEFORE}: they read 5 of 19 cells",)
    }
