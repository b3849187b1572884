from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.snapshots.timing import Timing

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock


def test_what_operations_took_is_read_back_the_latest_first(store: Store):
    run = Timing("run", {"starting Spark": 5.5, "building": 20.0})
    apply_ = Timing("apply", {"building": 7.0}, "p1", 30, by_rows=True)
    promote = Timing("promote", {}, "p1", 30, by_rows=True)
    for taken in (run, apply_, promote):
        store.plans.keep_timing(taken)

    kept = [replace(timing, at=None) for timing in store.plans.timings()]
    assert kept == [promote, apply_, run]
    assert store.plans.timings(limit=2) == store.plans.timings()[:2]
    assert store.plans.timings("p1") == store.plans.timings()[:2]


def test_an_operation_is_kept_with_when_it_ended(store: Store, clock: Clock):
    store.plans.keep_timing(Timing("run", {"building": 20.0}))

    assert [timing.at for timing in store.plans.timings()] == [clock()]


def test_only_the_last_thousand_are_kept(store: Store):
    for number in range(1002):
        store.plans.keep_timing(Timing("run", {}, f"p{number}"))

    kept = store.plans.timings()
    assert [len(kept), kept[0].plan_id, kept[-1].plan_id] == [1000, "p1001", "p2"]
