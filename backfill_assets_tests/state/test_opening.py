from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import GAP
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.state.opening import (
    CellsReadyError,
    UpstreamNotReadyError,
    VersionMovedError,
)
from backfill_assets_tests.state.building import Asked, add_model, days, fill

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


def _reading(start: int, end: int) -> dict[str, IntervalSet]:
    return {"orders": IntervalSet.of([days(start, end)])}


def test_a_batch_pins_its_inputs_before_it_computes(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 3))
    fill(store, Asked("orders", 3, 5))
    source = InputPin("raw.orders", "", "/lake/orders", 12)
    request = replace(Asked("revenue", 0, 3, reads=_reading(0, 4)).request, source_pins=(source,))

    opened = store.batches.open_batch(request)
    fill(store, Asked("orders", 5, 6))

    assert opened.inputs == (InputPin("orders", "orders__v1", "/data/orders__v1", 1), source)
    assert store.batches.get(request.batch_id).inputs == opened.inputs


def test_a_batch_that_reads_cells_nobody_filled_is_refused_with_the_cells(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 3))
    fill(store, Asked("orders", 4, 5))

    with pytest.raises(UpstreamNotReadyError, match="Fill orders first") as refused:
        store.batches.open_batch(Asked("revenue", 0, 5, reads=_reading(0, 6)).request)

    assert refused.value.missing == IntervalSet.of([days(3, 4), days(5, 6)])
    assert store.batches.latest(model="revenue") == []


def test_an_upstream_without_a_pointer_misses_everything(store: Store):
    reads = {"nothing": IntervalSet.of([days(0, 1)])}
    with pytest.raises(UpstreamNotReadyError):
        store.batches.open_batch(Asked(reads=reads).request)


def test_an_upstream_that_is_read_nowhere_yet_is_pinned_all_the_same(store: Store):
    add_model(store, "revenue")
    opened = store.batches.open_batch(
        Asked("revenue", reads={"orders": IntervalSet.empty()}).request
    )

    assert opened.inputs == (InputPin("orders", "orders__v1", "/data/orders__v1", -1),)


def test_a_batch_for_a_version_that_its_environment_does_not_read_is_refused(store: Store):
    request = replace(Asked().request, version="orders__v2")
    with pytest.raises(VersionMovedError, match="orders__v1"):
        store.batches.open_batch(request)


def test_a_gap_fill_leaves_cells_that_others_have_filled_meanwhile(store: Store):
    built = fill(store, Asked(start=0, end=2))

    with pytest.raises(CellsReadyError) as refused:
        store.batches.open_batch(Asked(start=1, end=4, run="run-2", reason=GAP).request)

    assert refused.value.built_by == {days(1, 2): built.batch_id}
    assert store.views.of("prod").claimed == {}
    store.batches.open_batch(Asked(start=2, end=4, run="run-2", reason=GAP).request)


def test_a_rebuild_leaves_cells_that_others_have_built_since_it_was_decided(store: Store):
    first = fill(store, Asked(start=0, end=2))
    seen = store.versions.known_head("orders__v1")
    again = fill(store, Asked(start=0, end=1, run="run-2", reason="refresh"))
    decided = replace(Asked(start=0, end=2, run="run-3", reason="refresh").request, seen=seen)

    with pytest.raises(CellsReadyError) as refused:
        store.batches.open_batch(decided)

    assert first.batch_id != again.batch_id
    assert refused.value.built_by == {days(0, 1): again.batch_id}
    now = store.versions.known_head("orders__v1")
    store.batches.open_batch(replace(decided, seen=now))


def test_each_opening_and_each_record_draws_a_larger_number(store: Store):
    add_model(store, "revenue")
    first = store.batches.open_batch(Asked("orders", 0, 1).request)
    fill(store, Asked("orders", 1, 2))
    (record,) = store.versions.ready_records("orders__v1")
    later = store.batches.open_batch(Asked("orders", 2, 3).request)

    assert first.built_at < record.built_at < record.changed_at.row_set < later.built_at
