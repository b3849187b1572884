from __future__ import annotations

from backfill_assets.engine.plans.carrying_over import not_carried_over, what_lacked
from backfill_assets.engine.project.events import Failed, Waiting
from backfill_assets_tests.builders import days

PAUSED = "plan p1, which is paused"


def test_what_failed_is_said_before_what_waits_and_each_once():
    events = {
        "web.a": (Waiting("web.a", days(1), PAUSED), Waiting("web.a", days(2), PAUSED)),
        "web.b": (Failed("web.b", "b1", days(3), "boom"),),
    }

    assert what_lacked(events) == ("boom", f"web.a waits for {PAUSED}")
    error = not_carried_over("p1", {"web.a": "2024-01-01"}, what_lacked({"web.a": events["web.a"]}))
    assert f"web.a: 2024-01-01 (web.a waits for {PAUSED})" in str(error)


def test_nothing_is_said_where_nothing_was_told():
    assert what_lacked({"web.a": ()}) == ()
