"""A requested range that starts before the first source data starts where that begins, on record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.intervals import IntervalSet, Whole
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.plan_json import plan_json, read_plan
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.render.plan_words import Naming
from backfill_assets.render.why_not import why_not
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.state_view import ReadyRun, SourceState
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, day, days, stamps
from backfill_assets_tests.planning.test_build_plan import NOW, TWICE, a_plan, a_state

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.plan_state import PlanState

A = a_model("web.a")
DAILY = a_graph(A, a_model("web.b", upstreams=["web.a"]))
ASKED = {"start": "2024-01-02"}
FROM_5 = "web.events holds no rows before 2024-01-05 (delta_version 4)"


def looked_at(
    graph: Graph, *cells: int, emptied: tuple[int, ...] = (), **ready: IntervalSet
) -> PlanState:
    """Prod runs the graph, nothing is ready but what is said, and the source holds these days."""
    nothing = {name.partition(".")[2]: IntervalSet.empty() for name in graph.order}
    state = a_state(graph, **{**nothing, **ready})
    runs = tuple(
        ReadyRun(interval, 0, stamps(0), "", own=False) for interval in days(*cells, *emptied)
    )
    source = SourceState(Pointer("", EVENTS, "", "", 4), runs, days(*emptied))
    return replace(state, view=replace(state.view, sources={EVENTS: source}))


def cells(plan: Plan, name: str = "web.a") -> IntervalSet:
    found = plan.model(name)
    return IntervalSet.empty() if found is None else found.cells


def test_a_range_that_starts_before_the_first_source_data_starts_there_on_record():
    plan = read_plan(plan_json(a_plan(DAILY, looked_at(DAILY, 5, 7), **ASKED)))

    for name in ("web.a", "web.b"):
        model = plan.model(name)
        assert model is not None
        assert model.cells == IntervalSet.of([day(5, 6)])
        assert "; ".join(model.notes) == (
            f"asked from 2024-01-02, begins where its data does: {FROM_5}; left out, and still "
            "missing unless a planned cell reads it: 2024-01-02..2024-01-04 (3)"
        )
    assert plan.request.start == "2024-01-02"
    (answer,) = why_not(plan, Naming({"web.a": A.cadence}), "web.a", days(3))
    assert "or before its source data begins" in answer.text


def test_what_is_left_out_of_a_plan_is_required_all_the_same():
    state = looked_at(DAILY, 5)

    assert needs_work(DAILY, state.view, A, now=NOW).gaps == IntervalSet.of([day(1, 10)])
    assert cells(a_plan(DAILY, state)) == IntervalSet.of([day(1, 10)])


def test_cells_that_a_model_declares_before_its_first_data_are_planned_and_named():
    plan = read_plan(plan_json(a_plan(DAILY, looked_at(DAILY, 5, a=days(2)))))

    model = plan.model("web.a")
    assert model is not None
    assert model.cells == IntervalSet.of([day(1, 10)]) - days(2)
    assert "; ".join(model.notes) == (
        f"starts before its data does: {FROM_5}; planned nevertheless (--start leaves them out), as the "
        "query makes them of no rows: 2024-01-01, 2024-01-03..2024-01-04 (2); a later start of the model "
        "leaves them out for good"
    )
    known = a_plan(DAILY, looked_at(DAILY, 1)).model("web.a")
    assert known is not None
    assert known.notes == ()


@pytest.mark.parametrize(
    ("when_empty", "words"),
    [
        ("wait", "left out, as they wait for rows of web.events: 2024-01-01..2024-01-04 (4)"),
        (
            "fail",
            "planned nevertheless (--start leaves them out), and they fail without rows of web",
        ),
    ],
)
def test_cells_before_the_first_data_of_a_source_that_does_not_accept_them_are_told_so(
    when_empty: str, words: str
):
    graph = a_graph(*DAILY.models.values(), sources=[a_source(when_empty=when_empty)])
    plan = a_plan(graph, looked_at(graph, 5))

    for name in ("web.a", "web.b"):
        model = plan.model(name)
        assert model is not None
        assert words in "; ".join(model.notes)


def test_a_range_wholly_before_the_first_source_data_plans_nothing_and_says_why():
    plan = a_plan(DAILY, looked_at(DAILY, 8), start="2024-01-02", end="2024-01-04")

    assert plan.is_empty
    assert any("no rows before 2024-01-08" in note for note in plan.notes)
    (answer,) = why_not(plan, Naming({"web.a": A.cadence}), "web.a", days(3))
    assert "no rows before 2024-01-08" in answer.text


def test_cells_before_the_first_source_data_that_are_published_stay_in_a_new_table():
    edited = a_graph(a_model("web.a", sql=TWICE))
    state = looked_at(a_graph(A), 5, a=days(2, 3, 5, 6, 7, 8, 9, 10))

    assert cells(a_plan(edited, state, **ASKED)) == days(2, 3, 5, 6, 7, 8, 9, 10)


def test_a_source_cell_that_lost_its_rows_is_data():
    assert (
        cells(a_plan(DAILY, looked_at(DAILY, 7, emptied=(4,)), **ASKED)).boundaries[0]
        == (IntervalSet.of([day(4)]).boundaries[0])
    )


def test_a_reader_begins_where_cells_of_its_upstream_are_ready_before_the_source_data():
    plan = a_plan(DAILY, looked_at(DAILY, 5, a=days(3)), **ASKED)

    assert cells(plan, "web.b") == IntervalSet.of([day(3, 8)])
    assert cells(plan) == IntervalSet.of([day(4, 7)])  # web.b reads the 4th


def test_a_cell_that_a_planned_one_reads_comes_along():
    graph = a_graph(A, a_model("web.b", upstreams=[Upstream("web.a", lookback=2)]))

    plan = a_plan(graph, looked_at(graph, 5), **ASKED)

    assert cells(plan, "web.b") == IntervalSet.of([day(5, 6)])
    assert cells(plan) == IntervalSet.of([day(3, 8)])


@pytest.mark.parametrize(
    ("graph", "asked"),
    [
        (DAILY, {"empty": True}),
        (a_graph(a_model("web.a", upstreams=[EVENTS, Upstream("web.a", lookback=1)])), {}),
    ],
    ids=["recorded empty", "reads itself"],
)
def test_cells_before_the_first_source_data_are_planned_where_later_ones_may_rest_on_them(
    graph: Graph, asked: dict[str, Any]
):
    found = cells(a_plan(graph, looked_at(graph, 5), **ASKED, **asked))

    assert not days(2, 3, 4) - found


def test_where_it_is_not_known_where_the_data_begins_the_range_starts_as_asked():
    unknown = a_state(DAILY, a=IntervalSet.empty(), b=IntervalSet.empty())
    whole = a_graph(
        a_model("web.w", cadence=Whole()),
        a_model("web.a", upstreams=[Upstream("web.w", time_column="ds")]),
    )

    plan = a_plan(DAILY, unknown, **ASKED)

    model = plan.model("web.a")
    assert model is not None
    assert model.cells == IntervalSet.of([day(2, 9)])
    assert "; ".join(model.notes) == (
        "the range starts at 2024-01-02 as asked: where web.events begins is not known, since it "
        "was never looked at"
    )
    asked = a_plan(whole, looked_at(whole, 5), **ASKED)
    assert cells(asked) == IntervalSet.of([day(2, 9)])
    model = asked.model("web.a")
    assert model is not None
    assert "as asked: where web.w begins is not known" in "; ".join(model.notes)
