from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.timing import Timing

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


def test_what_operations_took_is_read_back_the_latest_first(store: Store):
    run = Timing("run", {"starting Spark": 5.5, "building": 20.0})
    apply_ = Timing("apply", {"building": 7.0}, "p1", 30, by_rows=True)
    promote = Timing("promote", {}, "p1", 30, by_rows=True)
    for one in (run, apply_, promote):
        store.plans.keep_timing(one)

    assert store.plans.timings() == [promote, apply_, run]
    assert store.plans.timings(limit=2) == [promote, apply_]
    assert store.plans.timings("p1") == [promote, apply_]


def test_only_the_last_thousand_are_kept(store: Store):
    for number in range(1002):
        store.plans.keep_timing(Timing("run", {}, f"p{number}"))

    kept = store.plans.timings()
    assert [len(kept), kept[0].plan_id, kept[-1].plan_id] == [1000, "p1001", "p2"]
