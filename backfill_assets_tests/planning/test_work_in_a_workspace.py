from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backfill_assets.intervals import IntervalSet
from backfill_assets.planning.needs_work import needs_work
from backfill_assets.snapshots.environment import Environment
from backfill_assets.snapshots.restamp import NEVER_READ
from backfill_assets.snapshots.state_view import ReadyRun, StateView
from backfill_assets_tests.builders import DAY, FIRST, a_graph, a_model, a_run, a_view, day, stamps

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
