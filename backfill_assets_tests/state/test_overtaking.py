from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.state.opening import VersionMovedError
from backfill_assets.state.overtaking import InputsMovedError
from backfill_assets_tests.state.building import (
    LEASE,
    Asked,
    add_model,
    content,
    days,
    each_day,
    fill,
    write,
)
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.models.content import Content
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock


def _reading(store: Store, start: int, end: int) -> OpenBatch:
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 10))
    return store.batches.open_batch(
        Asked("revenue", 0, 3, reads={"orders": cells((start, end))}).request
    )


def _restate(store: Store, start: int, end: int, rows: int, model: str = "orders") -> None:
    trial = Trial(store)
    trial.in_place(model, cells((start, end)))
    trial.open()
    trial.fill(model, start, end, dict.fromkeys(each_day(start, end), content(rows)))
    trial.promote()


def test_a_batch_that_read_what_a_promotion_has_changed_commits_nothing(store: Store):
    opened = _reading(store, 0, 3)
    store.batches.check_inputs(opened)
    _restate(store, 2, 5, rows=11)
    with pytest.raises(InputsMovedError, match="plan p1 published orders"):
        store.batches.check_inputs(opened)


def test_what_changed_before_a_batch_is_recorded_makes_it_stale_and_not_owed(store: Store):
    opened = _reading(store, 0, 3)
    _restate(store, 2, 5, rows=11)
    commit = write(store, opened)
    *_, now = store.versions.records_ever("orders__v1", cells((2, 3)))
    assert now.changed_at.row_set > commit.built_at
    assert not store.views.of("prod").owed["revenue"]


@pytest.mark.parametrize("held", [content(10), content(10, amount=12)])
def test_what_another_table_holds_as_it_was_or_with_a_later_stamp_is_not_owed(
    store: Store, held: Content
):
    opened = _reading(store, 0, 3)
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 10, dict.fromkeys(each_day(0, 10), content(10)) | {days(1, 2): held})
    trial.promote()

    write(store, opened)

    assert not store.views.of("prod").owed["revenue"]


def test_cells_that_it_did_not_read_are_no_concern_of_a_batch(store: Store):
    opened = _reading(store, 0, 3)
    _restate(store, 3, 5, rows=11)
    store.batches.check_inputs(opened)


def test_cells_that_came_out_as_they_were_are_none_either(store: Store):
    opened = _reading(store, 0, 3)
    _restate(store, 2, 5, rows=10)
    store.batches.check_inputs(opened)


def test_what_was_published_before_it_pinned_its_inputs_is_what_it_reads(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 10))
    _restate(store, 0, 5, rows=11)
    asked = Asked("revenue", 0, 3, reads={"orders": cells((0, 3))})
    store.batches.check_inputs(store.batches.open_batch(asked.request))


def test_an_upstream_that_moved_to_another_table_overtakes_every_reader(store: Store):
    opened = _reading(store, 0, 3)
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 10)
    trial.promote()
    with pytest.raises(InputsMovedError):
        store.batches.check_inputs(opened)


@pytest.mark.parametrize("rows", [10, 11])
def test_a_batch_of_cells_that_a_promotion_has_rewritten_commits_nothing(store: Store, rows: int):
    fill(store, Asked("orders", 0, 10))
    inside = store.batches.open_batch(Asked("orders", 2, 3, run="run-2").request)
    outside = store.batches.open_batch(Asked("orders", 10, 11, run="run-3").request)
    _restate(store, 1, 5, rows=rows)

    store.batches.check_inputs(outside)
    with pytest.raises(InputsMovedError):
        store.batches.check_inputs(inside)


def test_a_batch_does_not_outlive_the_snapshot_that_it_runs(store: Store):
    fill(store, Asked("orders", 0, 10))
    opened = store.batches.open_batch(Asked("orders", 10, 11, run="run-3").request)
    trial = Trial(store)
    trial.in_place("orders", fingerprint="forward-only")
    trial.open()
    trial.promote()
    assert store.environments.pointers("prod")["orders"].fingerprint == "forward-only"
    with pytest.raises(InputsMovedError):
        store.batches.check_inputs(opened)


def test_what_the_followed_environment_publishes_overtakes_its_followers_too(store: Store):
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))
    fill(store, Asked("orders", 0, 10))
    dev = Trial(store, "p9", environment="dev")
    dev.new_version("clicks", "clicks__v1")
    dev.open()
    dev.promote()
    asked = Asked("clicks", 0, 1, environment="dev", reads={"orders": cells((0, 1))})
    opened = store.batches.open_batch(asked.request)
    _restate(store, 0, 1, rows=11)
    with pytest.raises(InputsMovedError):
        store.batches.check_inputs(opened)
    assert days(0, 1)


def test_a_batch_whose_workspace_is_gone_commits_nothing(store: Store):
    trial = Trial(store)
    version = trial.new_version("orders")
    trial.open()
    asked = Asked("orders", 0, 1, environment=trial.workspace, table=version, plan="p1")
    opened = store.batches.open_batch(asked.request)
    store.batches.check_inputs(opened)
    trial.publish(trial.move("orders"))
    with pytest.raises(VersionMovedError):
        store.batches.check_inputs(opened)


def test_a_batch_that_was_silent_while_a_first_pointer_took_the_place_of_its_own_commits_nothing(
    store: Store, clock: Clock
):
    add_model(store, "orders")
    opened = store.batches.open_batch(Asked("orders", 0, 1).request)
    clock.pass_by(LEASE + 1)
    wanted = Pointer("prod", "orders", "another", "orders__v2", -1)
    assert store.environments.ensure_pointer(wanted, "/data/orders__v2") == wanted

    with pytest.raises(VersionMovedError):
        store.batches.check_inputs(opened)
