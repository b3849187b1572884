"""Which cells of a plan are its canaries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Cadence, Daily, Hourly, IntervalSet, Weekly
from backfill_assets.intervals.required import required
from backfill_assets.models.cells import cells_read
from backfill_assets.models.upstream import Upstream, own_cells
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_json import plan_json, read_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.stages import BuildCanaries, apply_stages
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_run, a_view, a_whole

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan

VISITS, SUMS, TRENDS = "web.visits", "web.sums", "web.trends"
NOW = datetime(2024, 12, 24, tzinfo=UTC)


def all_of(cadence: Cadence) -> IntervalSet:
    return required(cadence, now=NOW)


def restated(
    graph: Graph,
    *names: str,
    canary: bool = True,
    start: str | None = None,
    end: str | None = None,
) -> Plan:
    """A plan that restates these models, all of whose cells are published."""
    view = a_view({
        name: [
            a_run(cell, 3)
            for cell in graph.models[name].cadence.cells(all_of(graph.models[name].cadence))
        ]
        for name in graph.order
    })  # fmt: skip
    state = PlanState(view=view, running=snapshots_of(graph))
    wrong = tuple(Restatement(name, start, end) for name in names)
    return build_plan(
        PlanRequest(environment="prod", restate=wrong, canary=canary), graph, state, NOW
    )


def canaries(plan: Plan, model: Model) -> list[str]:
    return [model.cadence.key(cell) for cell in model.cadence.cells(plan.canaries[model.name])]


def a_year(tz: str = "UTC") -> Cadence:
    return Daily(start="2024-01-01", end="2024-12-20", tz=tz)


def test_the_oldest_the_newest_a_month_end_and_the_day_of_the_clock_change_are_canaries():
    model = a_model(cadence=a_year("Europe/Berlin"))

    plan = restated(a_graph(model), VISITS)

    assert canaries(plan, model) == ["2024-01-01", "2024-10-27", "2024-11-30", "2024-12-20"]


def test_a_zone_without_clock_changes_has_no_such_day():
    model = a_model(cadence=a_year())

    assert canaries(restated(a_graph(model), VISITS), model) == [
        "2024-01-01", "2024-11-30", "2024-12-20",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cadence", "expected"),
    [
        (Daily(start="2024-01-01", end="2024-04-20", tz="America/New_York"),
         ["2024-01-01", "2024-03-10", "2024-03-31", "2024-04-20"]),
        (Hourly(start="2024-01-31", end="2024-02-01"),
         ["2024-01-31-00:00", "2024-01-31-23:00", "2024-02-01-23:00"]),
        (Weekly(start="2024-01-01", end="2024-04-21"), ["2024-01-01", "2024-04-15"]),
    ],
)  # fmt: skip
def test_month_ends_and_clock_changes_are_those_of_the_cells_own_length(
    cadence: Cadence, expected: list[str]
):
    model = a_model(cadence=cadence)

    assert canaries(restated(a_graph(model), VISITS), model) == expected


@pytest.mark.parametrize(
    ("most", "chosen"),
    [(200, {"2024-07-18"}), (0, set[str]())],  # the two-hundredth day; all alike
)
def test_the_oldest_cell_with_the_most_rows_is_a_canary_wherever_it_lies_in_its_batch(
    most: int, chosen: set[str]
):
    model = a_model(cadence=a_year())
    graph = a_graph(model)
    cells = [*model.cadence.cells(all_of(model.cadence))]
    rows = {cell: number if number < most else 7 for number, cell in enumerate(cells)}
    one_batch = [a_run(cell, 3) for cell in cells]
    view = a_view({VISITS: one_batch})
    state = PlanState(view=view, running=snapshots_of(graph), rows={VISITS: rows})
    request = PlanRequest(environment="prod", restate=(Restatement(VISITS),), canary=True)

    plan = build_plan(request, graph, state, NOW)

    others = {"2024-01-01", "2024-11-30", "2024-12-20"}
    assert {*canaries(plan, model)} == others | chosen


@given(st.integers(0, 9), st.booleans())
def test_all_planned_cells_that_a_canary_reads_are_canaries(lookback: int, weekly: bool):  # noqa: FBT001 - hypothesis gives it
    visits = a_model(VISITS, cadence=a_year())
    cadence = Weekly(start="2024-01-01", end="2024-12-16") if weekly else a_year()
    sums = a_model(SUMS, upstreams=[Upstream(VISITS, lookback=lookback)], cadence=cadence)
    trends = a_model(TRENDS, upstreams=[Upstream(SUMS, lookback=lookback)], cadence=cadence)

    plan = restated(a_graph(visits, sums, trends), VISITS, start="2024-03-01", end="2024-10-31")

    planned = {each.model: each.cells for each in plan.models}
    assert plan.canaries[TRENDS]
    for reader, upstream in ((trends, sums), (sums, visits)):
        (reads,) = reader.reads
        chosen = plan.canaries[reader.name]
        read = cells_read(cadence, reads, upstream.cadence, chosen, until=NOW)
        assert not (read & planned[upstream.name]) - plan.canaries[upstream.name]
        assert not plan.canaries[upstream.name] - planned[upstream.name]


def test_of_a_model_that_is_built_in_order_the_first_cell_is_the_canary():
    model = a_model(upstreams=[EVENTS, Upstream(VISITS, lookback=own_cells(1))], cadence=a_year())

    assert canaries(restated(a_graph(model), VISITS), model) == ["2024-01-01"]


def test_few_cells_and_whole_tables_have_no_canaries():
    short = a_model(cadence=Daily(start="2024-01-01", end="2024-01-09"))
    whole = a_whole("web.whole")

    plan = restated(a_graph(short, whole), VISITS, "web.whole")

    assert not plan.canaries
    assert not any(isinstance(stage, BuildCanaries) for stage in apply_stages(plan))


def test_ten_cells_are_enough_for_canaries():
    model = a_model(cadence=Daily(start="2024-01-01", end="2024-01-10"))

    assert canaries(restated(a_graph(model), VISITS), model) == ["2024-01-01", "2024-01-10"]


def test_canaries_are_chosen_on_request_alone_and_are_part_of_the_plan():
    graph = a_graph(a_model(cadence=a_year()))

    assert not restated(graph, VISITS, canary=False).canaries
    plan = restated(graph, VISITS)
    assert read_plan(plan_json(plan)) == plan
    (stage,) = (stage for stage in apply_stages(plan) if isinstance(stage, BuildCanaries))
    assert stage.cells == plan.canaries
    assert isinstance(plan.canaries[VISITS], IntervalSet)
