from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


def test_what_a_comparison_has_found_is_kept_with_its_plan(store: Store):
    store.plans.keep_comparison("p1", "files", '{"rows":1}')
    store.plans.keep_comparison("p1", "files", '{"rows":1}')  # by another process, meanwhile
    store.plans.keep_comparison("p2", "files", '{"rows":2}')

    assert store.plans.comparison("p1", "files") == '{"rows":1}'
    assert store.plans.comparison("p2", "files") == '{"rows":2}'
    assert store.plans.comparison("p1", "other files") is None
