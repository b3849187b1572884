from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from backfill_assets.intervals.cadence import WHOLE_CELL, Cadence, Daily
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.rule.explain import Reason, why
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.state_view import Owing, SourceState, StateView
from backfill_assets_tests.builders import (
    DAY,
    EVENTS,
    FIRST,
    a_graph,
    a_model,
    a_run,
    a_view,
    a_whole,
    day,
    days,
    stamps,
)

NOW = FIRST + 5 * DAY + timedelta(hours=3)
BOTTOM = a_model("web.bottom")
MIDDLE = a_model("web.middle", upstreams=[Upstream("web.bottom", lookback=1)])
TOP = a_model("web.top", upstreams=["web.middle"])
GRAPH = a_graph(BOTTOM, MIDDLE, TOP)


def asked(view: StateView, model: str = "web.top", number: int = 3, cells: int = 1, **more: Any):  # noqa: ANN401 - as `why` takes them
    return [
        (reason.depth, reason.model, reason.cells, reason.branch)
        for reason in why(GRAPH, view, model, day(number, cells), now=NOW, **more)
    ]


def not_required(cadence: Cadence, number: int, cells: int = 1):
    model = a_model("web.bottom", cadence=cadence)
    reasons = why(a_graph(model), a_view({}), "web.bottom", day(number, cells), now=NOW)
    assert {reason.branch for reason in reasons} == {"not required"}
    return [(reason.cells, reason.text) for reason in reasons]


def test_a_cell_outside_the_models_life_is_not_required():
    life = Daily(start="2024-01-03", end="2024-01-04")

    assert not_required(life, 5, 5) == [
        ("2024-01-05..2024-01-09 (5)", "outside what is required: 2024-01-03..2024-01-04 (2)")
    ]
    assert not_required(life, 1, 2) == [
        ("2024-01-01..2024-01-02 (2)", "outside what is required: 2024-01-03..2024-01-04 (2)")
    ]


def test_a_cell_that_is_not_due_says_when_it_is():
    assert not_required(Daily(start="2024-01-01"), 9) == [
        ("2024-01-09", "not due before 2024-01-10 00:00 UTC")
    ]
    over = Daily(start="2024-01-01", cron="30 5 * * *", cron_tz="Europe/Berlin")
    assert not_required(over, 5, 2) == [
        ("2024-01-05..2024-01-06 (2)", "not due before 2024-01-06 04:30 UTC")
    ]


def test_a_gap_whose_inputs_are_ready_can_run():
    assert asked(a_view({}), "web.bottom") == [(0, "web.bottom", "2024-01-03", "gap")]


def test_a_claimed_cell_is_running():
    view = a_view({}, web__bottom=days(3))
    assert asked(view, "web.bottom", 2, 3) == [
        (0, "web.bottom", "2024-01-03", "running"),
        (0, "web.bottom", "2024-01-02, 2024-01-04", "gap"),
    ]


def test_a_gap_that_waits_is_followed_to_the_cells_that_lack():
    view = a_view({"web.bottom": [a_run(day(1), 1), a_run(day(3, 3), 2)]})

    assert asked(view) == [
        (0, "web.top", "2024-01-03", "waits"),
        (1, "web.middle", "2024-01-03", "waits"),
        (2, "web.bottom", "2024-01-02", "gap"),
    ]


def test_a_fresh_cell_names_the_batch_that_built_it():
    view = a_view({"web.bottom": [a_run(day(1, 2), 1), a_run(day(3, 3), 2)]})

    reasons = why(GRAPH, view, "web.bottom", day(2, 2), now=NOW)

    assert [(reason.branch, reason.cells) for reason in reasons] == [
        ("ready", "2024-01-02"),
        ("ready", "2024-01-03"),
    ]
    assert ["batch-1" in reasons[0].text, "batch-2" in reasons[1].text] == [True, True]


def test_a_stale_cell_is_followed_to_the_batch_that_changed_what_it_read():
    view = a_view(
        {
            "web.bottom": [a_run(day(1, 5), 1)],
            "web.middle": [a_run(day(1, 2), 3), a_run(day(3), 9), a_run(day(4, 2), 3)],
            "web.top": [a_run(day(1, 5), 5)],
        }
    )

    reasons = why(GRAPH, view, "web.top", day(1, 5), now=NOW)

    assert [(reason.depth, reason.branch, reason.cells) for reason in reasons] == [
        (0, "upstream changed", "2024-01-03"),
        (0, "ready", "2024-01-01..2024-01-02 (2), 2024-01-04..2024-01-05 (2)"),
        (1, "ready", "2024-01-03"),
    ]
    assert asked(view, number=2) == [(0, "web.top", "2024-01-02", "ready")]
    assert "built before web.middle changed" in reasons[0].text
    assert "batch-9" in reasons[2].text


def test_lineage_decides_what_counts_as_changed():
    view = a_view(
        {
            "web.middle": [a_run(day(1, 5), 9, stamps(1, cost=9))],
            "web.top": [a_run(day(1, 5), 5)],
        }
    )
    ids = {"web.top": {"web.middle": frozenset({"id"})}}

    assert asked(view)[0][3] == "upstream changed"
    assert asked(view, reads=ids) == [(0, "web.top", "2024-01-03", "ready")]


def test_a_range_is_told_branch_by_branch():
    view = a_view({"web.bottom": [a_run(day(1, 2), 1)]})
    assert asked(view, "web.bottom", 1, 8) == [
        (0, "web.bottom", "2024-01-06..2024-01-08 (3)", "not required"),
        (0, "web.bottom", "2024-01-03..2024-01-05 (3)", "gap"),
        (0, "web.bottom", "2024-01-01..2024-01-02 (2)", "ready"),
    ]


def test_a_reason_is_a_plain_value():
    assert why(GRAPH, a_view({}), "web.bottom", day(1), now=NOW) == (
        Reason(
            0, "web.bottom", "2024-01-01", "gap", "required and not ready; all it reads is ready"
        ),
    )


def test_a_cell_whose_source_got_late_rows_says_so():
    graph = a_graph(a_model("web.late"))
    late = SourceState(Pointer("", EVENTS, "", "", 4), (replace(a_run(day(3, 2), 9), own=False),))
    view = replace(a_view({"web.late": [a_run(day(1, 4), 5)]}), sources={EVENTS: late})

    (reason,) = why(graph, view, "web.late", day(3), now=NOW)

    assert (reason.branch, reason.cells) == ("late data", "2024-01-03")
    assert reason.text.startswith("built before web.events got, lost or changed rows")
    (other,) = why(graph, view, "web.late", day(2), now=NOW)
    assert other.branch == "ready"


def test_a_stale_cell_that_waits_for_what_it_reads_is_not_called_a_gap():
    whole = a_whole("web.whole", late_window=1, upstreams=["web.bottom"])
    view = a_view(
        {"web.bottom": [a_run(day(1, 4), 1, changed=20)], "web.whole": [a_run(WHOLE_CELL, 10)]}
    )

    reasons = why(a_graph(BOTTOM, whole), view, "web.whole", WHOLE_CELL, now=NOW)

    waits, changed, *upstream = reasons
    assert waits.branch == "waits"
    assert waits.text == "to be built again, but reads cells of web.bottom that are missing"
    assert changed.branch == "upstream changed"
    assert ("gap", "2024-01-05") in [(reason.branch, reason.cells) for reason in upstream]


def test_a_cell_that_was_declared_wrong_says_why_once_where_that_is_known():
    view = replace(
        a_view({"web.bottom": [a_run(day(1, 5), 1)]}),
        owed=CellsByModel({"web.bottom": days(2, 3)}),
        owing={"web.bottom": (Owing(days(3), "a wrong rate", "p1"),)},
    )

    reasons = why(GRAPH, view, "web.bottom", day(2, 3), now=NOW)

    assert [(reason.cells, reason.branch) for reason in reasons] == [
        ("2024-01-03", "restated"),
        ("2024-01-02", "restated"),
        ("2024-01-04", "ready"),
    ]
    assert reasons[0].text.endswith("not rebuilt or published yet: plan p1: a wrong rate")
