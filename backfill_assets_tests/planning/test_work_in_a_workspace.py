from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backfill_assets.intervals import IntervalSet
from backfill_assets.planning.plan.left import left_of
from backfill_assets.planning.rule.needs_work import Work, needs_work
from backfill_assets.planning.rule.stale import Stale
from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.snapshots.state_view import NEVER_READ, ReadyRun, SourceState, StateView
from backfill_assets_tests.builders import (
    DAY,
    EVENTS,
    FIRST,
    a_graph,
    a_model,
    a_run,
    a_view,
    day,
    days,
    stamps,
)

NOW = FIRST + 5 * DAY + timedelta(hours=3)
OPENED, FILLED, CARRIED = 10, 20, 30
READER = a_model("web.reader", upstreams=["web.first"])
GRAPH = a_graph(a_model("web.first"), READER)


def workspace(first: ReadyRun, reader: ReadyRun) -> StateView:
    """Two models over one day in a workspace that was opened before prod filled that day."""
    view = a_view({"web.first": [first], "web.reader": [reader]})
    return replace(view, environment=Environment("plan:p", protected=False, opened=OPENED))


def test_a_cell_that_prod_filled_meanwhile_is_right_where_the_plan_holds_what_prod_has():
    carried = replace(a_run(day(1), CARRIED, FILLED), unread=stamps(FILLED))
    filled = replace(a_run(day(1), FILLED + 1), own=False)

    assert not needs_work(GRAPH, workspace(carried, filled), READER, now=NOW).stale


def test_a_cell_that_prod_filled_meanwhile_is_stale_where_the_plan_holds_something_else():
    differs = replace(a_run(day(1), CARRIED, OPENED + 1), unread=stamps(NEVER_READ))
    filled = replace(a_run(day(1), FILLED + 1), own=False)

    [stale] = needs_work(GRAPH, workspace(differs, filled), READER, now=NOW).stale

    assert stale.cells == IntervalSet.of([day(1)])


def test_only_the_columns_that_differ_count_for_what_prod_has_filled():
    differs = replace(a_run(day(1), CARRIED, FILLED), unread=stamps(FILLED, cost=NEVER_READ))
    filled = replace(a_run(day(1), FILLED + 1), own=False)
    view = workspace(differs, filled)

    reads_id = {"web.first": frozenset({"id"})}
    assert not needs_work(GRAPH, view, READER, now=NOW, reads=reads_id).stale
    reads_cost = {"web.first": frozenset({"cost"})}
    assert needs_work(GRAPH, view, READER, now=NOW, reads=reads_cost).stale


@pytest.mark.parametrize(
    ("declared", "older"),
    [
        ({"upstreams": []}, True),
        ({"upstreams": ["web.first"], "volatile": True}, True),
        ({"upstreams": ["web.first"]}, False),
    ],
    ids=["reads no upstream", "volatile", "upstream unmoved"],
)
def test_what_no_upstream_tells_of_counts_as_changed_since_it_was_read(
    declared: Any,  # noqa: ANN401
    older: bool,  # noqa: FBT001
):
    """Prod has built the cell again after the plan had: the plan's may be of an older answer."""
    model = a_model("web.reader", **declared)
    graph = a_graph(a_model("web.first"), model)
    overtaken = replace(a_run(day(1), FILLED), replaces=FILLED + 1)
    ahead = replace(a_run(day(2), FILLED + 2), replaces=FILLED + 1)
    view = workspace(a_run(day(1, 3), 1), overtaken)
    state = view.models["web.reader"]
    view = replace(
        view, models={**view.models, "web.reader": replace(state, runs=(overtaken, ahead))}
    )
    found = needs_work(graph, view, model, now=NOW).older
    assert found == (IntervalSet.of([day(1)]) if older else IntervalSet.empty())


def test_all_that_the_rule_finds_is_left_to_build_but_late_data_of_cells_that_the_workspace_has_built():
    other = replace(a_run(day(3), 5), own=False)
    view = a_view({"web.reader": [a_run(day(2), 5), other, a_run(day(4, 3), 5)]})
    inside = replace(view, environment=Environment("plan:p", protected=False, opened=OPENED))
    work = Work(
        required=days(1, 2, 3, 4, 5, 6),
        ready=days(2, 3, 4, 5, 6),
        gaps=days(1),
        stale=(
            Stale(days(2), "web.first", days(2)),
            Stale(days(3, 4), EVENTS, days(3, 4), late=True),
        ),
        owed=days(5),
        older=days(6),
    )

    assert left_of(work, inside, "web.reader") == days(1, 2, 3, 5, 6)
    assert left_of(work, view, "web.reader") == days(1)


def test_a_cell_of_the_plan_is_older_where_late_rows_came_after_it_had_read_its_source():
    model = a_model("web.first")
    own = replace(a_run(day(1), CARRIED), pinned_at=OPENED, replaces=FILLED)
    late = SourceState(Pointer("", EVENTS, "", "", 4), (replace(a_run(day(1, 2), 15), own=False),))
    has_read = replace(a_run(day(2), CARRIED), replaces=FILLED)
    view = replace(a_view({"web.first": [own, has_read]}), sources={EVENTS: late})
    view = replace(view, environment=Environment("plan:p", protected=False, opened=OPENED))

    assert needs_work(GRAPH, view, model, now=NOW).older == days(1)
