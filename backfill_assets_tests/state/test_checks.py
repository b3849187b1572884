"""Results of checks are replaced, acceptances are added; both are of one plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.plan_check import PlanCheck

if TYPE_CHECKING:
    from backfill_assets.state.store import Store

ROWS = PlanCheck(
    "web.visits", "no row is added", passed=False, text="found 1 of 3 rows", decided_by="ann"
)
COST = PlanCheck(
    "web.visits", "only cost differs", passed=True, text="found 2 rows of cost", basis="b"
)


def test_the_last_results_are_kept_in_their_order(store: Store):
    assert store.checks.of_plan("p1") == ()
    store.checks.keep("p1", [ROWS])
    store.checks.keep("p1", [COST, ROWS])
    store.checks.keep("p2", [ROWS])
    assert store.checks.of_plan("p1") == (COST, ROWS)


def test_an_acceptance_is_about_what_was_found_and_stays(store: Store):
    first = store.checks.accept("p1", ROWS, who="bob", reason="new shop")
    again = store.checks.accept("p1", ROWS, who="eve", reason="two new shops")
    assert store.checks.acceptances("p1") == (first, again)
    assert store.checks.acceptances("p2") == ()
    assert first.holds(ROWS)
    assert first.words == "accepted by bob: new shop"
