from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.environment import Environment, Layer, Pointer
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.snapshots import UnknownSnapshotError
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets_tests.state.building import (
    Asked,
    add_model,
    content,
    days,
    each_day,
    fill,
    owe,
)

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


DAY = 86_400


def test_prod_is_there_from_the_start_and_protected(store: Store):
    assert store.environments.get("prod") == Environment("prod", protected=True)


def test_an_unknown_environment_is_refused_with_those_that_exist(store: Store):
    store.environments.save_environment(Environment("dev", protected=True))
    store.environments.save_environment(Environment("dev", protected=False))

    assert store.environments.get("dev") == Environment("dev", protected=False)
    with pytest.raises(UnknownEnvironmentError, match="there is dev, prod"):
        store.views.of("pord")


def test_touching_cells_of_one_batch_with_equal_stamps_are_one_run(store: Store):
    fill(store, Asked(start=0, end=30))
    fill(store, Asked(start=30, end=40))
    fill(store, Asked(start=50, end=60))
    fill(store, Asked(start=10, end=11, run="run-2"))

    runs = store.views.of("prod").models["orders"].runs
    assert [each.interval for each in runs] == [
        days(0, 10), days(10, 11), days(11, 30), days(30, 40), days(50, 60),
    ]  # fmt: skip
    assert runs[0].changed_at == runs[1].changed_at == runs[2].changed_at
    assert runs[1].batch_id == "run-2/orders__v1/10-11"


def test_ready_cells_tell_what_their_batch_wrote_per_second(store: Store):
    fill(store, Asked(start=0, end=30))  # every batch of these tests writes 100 bytes
    fill(store, Asked(start=30, end=40))

    state = store.views.of("prod").models["orders"]
    assert [each.bytes_per_second for each in state.runs] == [
        pytest.approx(100 / (30 * DAY)), pytest.approx(100 / (10 * DAY)),
    ]  # fmt: skip
    assert state.bytes_per_second == pytest.approx(200 / (40 * DAY))


def test_a_workspace_knows_the_same_of_what_it_reads_below_and_of_what_it_built(store: Store):
    fill(store, Asked(start=0, end=4))
    store.environments.save_environment(Environment("dev", protected=False))
    under = (Layer("orders__v1", 0),)
    wanted = Pointer("dev", "orders", "print-orders", "orders__dev", -1, under)
    store.environments.ensure_pointer(wanted, "/data/orders__dev")
    fill(store, Asked(start=0, end=1, environment="dev", table="orders__dev", run="run-2"))

    runs = store.views.of("dev").models["orders"].runs
    assert [each.interval for each in runs] == [days(0, 1), days(1, 4)]
    assert [each.bytes_per_second for each in runs] == [
        pytest.approx(100 / DAY), pytest.approx(100 / (4 * DAY)),
    ]  # fmt: skip


def test_a_cell_with_a_stamp_of_its_own_is_a_run_of_its_own(store: Store):
    fill(store, Asked(start=0, end=3))
    other = {**dict.fromkeys(each_day(0, 3), content(10)), days(1, 2): content(12)}
    fill(store, Asked(start=0, end=3, run="run-2"), other)

    runs = store.views.of("prod").models["orders"].runs
    assert [each.interval for each in runs] == list(each_day(0, 3))


def test_an_environment_sees_what_was_ready_at_its_pin(store: Store):
    fill(store, Asked(start=0, end=3))
    store.environments.save_environment(Environment("dev", protected=False))
    store.environments.ensure_pointer(
        Pointer("dev", "orders", "p", "orders__v1", 0), "/data/orders__v1"
    )
    fill(store, Asked(start=3, end=6))

    assert store.views.of("dev").ready("orders") == IntervalSet.of([days(0, 3)])
    assert store.views.of("prod").ready("orders") == IntervalSet.of([days(0, 6)])


def test_models_do_not_run_into_each_other(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 3))
    fill(store, Asked("revenue", 3, 6))

    view = store.views.of("prod")
    assert view.ready("orders") == IntervalSet.of([days(0, 3)])
    assert view.ready("revenue") == IntervalSet.of([days(3, 6)])
    assert view.ready("nothing") == IntervalSet.empty()


def test_a_first_pointer_never_moves_one_whose_table_holds_cells(store: Store):
    fill(store, Asked("orders", 0, 3))
    wanted = Pointer("prod", "orders", "new-print", "orders__v2", -1)
    assert store.environments.ensure_pointer(wanted, "/data/orders__v2").version == "orders__v1"
    assert store.environments.pointers("prod")["orders"].fingerprint == "print-orders"
    with pytest.raises(UnknownVersionError):
        store.versions.version_path("orders__v2")


def test_a_saved_snapshot_stays_as_it_was_saved(store: Store):
    for definition in ("first", "second"):
        store.snapshots.save_snapshot(
            fingerprint_id="f", model="orders", version="orders__v1", definition=definition,
            logic="l", upstream="u", metadata="m",
        )  # fmt: skip

    assert store.snapshots.get("f").definition == "first"
    assert store.snapshots.get("f").version == "orders__v1"
    with pytest.raises(UnknownSnapshotError, match="'g'"):
        store.snapshots.get("g")


def test_batches_are_listed_the_latest_first(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 3))
    fill(store, Asked("orders", 3, 6))
    fill(store, Asked("revenue", 0, 3))

    assert [each.stretches.span() for each in store.batches.latest(model="orders")] == [
        days(3, 6),
        days(0, 3),
    ]
    assert [each.model for each in store.batches.latest(limit=1)] == ["revenue"]


def test_a_table_without_ready_cells_has_no_watermark_and_no_attempts(store: Store):
    assert store.versions.watermark("orders__v1") is None
    assert store.batches.attempts("orders__v1", IntervalSet.of([days(0, 1)])) == 0


def test_a_picture_of_some_models_shows_of_them_what_the_whole_one_does(store: Store):
    for model in ("orders", "items", "sums"):
        add_model(store, model)
        fill(store, Asked(model=model, start=0, end=3))
        owe(store, f"{model}__v1", IntervalSet.of([days(1, 2)]), "wrong")

    whole, some = store.views.of("prod"), store.views.of("prod", only=["items", "sums", "gone"])

    assert dict(some.models) == {name: whole.models[name] for name in ("items", "sums")}
    assert dict(some.owed) == {name: whole.owed[name] for name in ("items", "sums")}
