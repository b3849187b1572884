from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.state.locks import LostLeaseError, PlanLeasedError, TableLockedError
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets_tests.state.building import LEASE, NOON, Asked, check_lock, commit_of, fill

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

TABLE = "orders__v1"


def test_one_table_has_one_holder_and_the_second_learns_who(store: Store, other: Store):
    store.locks.take_commit_lock(TABLE, "batch-a")

    with pytest.raises(TableLockedError) as refused:
        other.locks.take_commit_lock(TABLE, "batch-b")
    assert (refused.value.holder, refused.value.since) == ("batch-a", NOON)


def test_tokens_grow_with_every_take(store: Store, other: Store, clock: Clock):
    first = store.locks.take_commit_lock(TABLE, "batch-a")
    store.locks.release_commit_lock(first)
    second = other.locks.take_commit_lock(TABLE, "batch-b")
    clock.pass_by(LEASE + 1)
    third = store.locks.take_commit_lock(TABLE, "batch-c")
    fourth = store.locks.take_commit_lock(TABLE, "batch-c")

    assert first.token < second.token < third.token < fourth.token
    assert [each.taken_over for each in (first, second, third, fourth)] == [
        False, False, True, True,
    ]  # fmt: skip


def test_a_token_is_larger_than_what_the_table_itself_has_seen(store: Store):
    assert store.locks.take_commit_lock(TABLE, "batch-a", above=41).token == 42
    # A backup that was restored has seen less than the table.
    assert store.locks.take_commit_lock(TABLE, "batch-a", above=77).token == 78


def test_a_lock_on_a_table_nobody_knows_is_refused(store: Store):
    with pytest.raises(UnknownVersionError, match="nope"):
        store.locks.take_commit_lock("nope", "batch-a")


def test_a_holder_that_wakes_after_a_takeover_records_nothing(
    store: Store, other: Store, clock: Clock
):
    asleep = store.batches.open_batch(Asked(start=0, end=3).request)
    lock = store.locks.take_commit_lock(TABLE, asleep.request.batch_id)
    clock.pass_by(LEASE + 1)
    taken = other.locks.take_commit_lock(TABLE, "batch-b")
    other.locks.advance_head(taken, 0)
    other.locks.release_commit_lock(taken)

    with pytest.raises(LostLeaseError):
        store.batches.record(
            commit_of(asleep, lock), lock, 1, bytes_written=None, finished_at=clock.now
        )
    with pytest.raises(LostLeaseError):
        store.locks.advance_head(lock, 1)
    with pytest.raises(LostLeaseError):
        check_lock(store, lock)
    assert store.versions.ready_records(TABLE) == []
    assert store.versions.known_head(TABLE) == 0


def test_a_lock_that_was_given_back_accounts_for_nothing_more(store: Store):
    lock = store.locks.take_commit_lock(TABLE, "batch-a")
    store.locks.release_commit_lock(lock)

    with pytest.raises(LostLeaseError, match="a run that has ended since took over"):
        store.locks.advance_head(lock, 3)
    assert store.versions.known_head(TABLE) == -1


def test_a_late_release_does_not_free_the_lock_of_another(store: Store, other: Store, clock: Clock):
    lock = store.locks.take_commit_lock(TABLE, "batch-a")
    clock.pass_by(LEASE + 1)
    taken = other.locks.take_commit_lock(TABLE, "batch-b")
    store.locks.release_commit_lock(lock)

    check_lock(other, taken)


@pytest.mark.parametrize("by_run", [True, False])
def test_a_runs_heartbeat_keeps_the_locks_of_the_run_and_of_its_batches(
    store: Store, other: Store, clock: Clock, *, by_run: bool
):
    opened = store.batches.open_batch(Asked().request)
    store.locks.take_commit_lock(TABLE, "run-1" if by_run else opened.request.batch_id)
    clock.pass_by(LEASE - 1)
    store.batches.heartbeat("run-1")
    clock.pass_by(LEASE - 1)

    with pytest.raises(TableLockedError):
        other.locks.take_commit_lock(TABLE, "batch-b")


def test_a_runs_heartbeat_keeps_the_table_that_it_accounts_for_and_none_of_a_run_with_a_longer_name(
    store: Store, other: Store, clock: Clock
):
    holder = f"run-1/{TABLE}"
    store.locks.take_commit_lock(TABLE, holder)
    clock.pass_by(LEASE - 1)
    store.batches.heartbeat("run-1")
    clock.pass_by(LEASE - 1)

    with pytest.raises(TableLockedError, match=holder):
        other.locks.take_commit_lock(TABLE, "batch-b")
    store.batches.heartbeat("run")
    clock.pass_by(2)
    assert other.locks.take_commit_lock(TABLE, "batch-b").taken_over


def test_a_lock_that_a_batch_which_is_over_never_gave_back_lapses_though_its_run_lives(
    store: Store, other: Store, clock: Clock
):
    over = "batch-a"
    store.batches.open_batch(replace(Asked().request, batch_id=over))
    store.locks.take_commit_lock(TABLE, over)
    store.batches.fail_batch(over, error="its disk is full", audits=(), finished_at=NOON)
    clock.pass_by(LEASE - 1)
    store.batches.heartbeat("run-1")
    clock.pass_by(2)

    assert other.locks.take_commit_lock(TABLE, "batch-b").taken_over


def test_a_lock_tells_the_head_that_the_state_accounts_for(store: Store):
    fill(store, Asked())
    lock = store.locks.take_commit_lock(TABLE, "batch-b")
    assert lock.known_head == 0
    store.locks.advance_head(lock, 3)
    store.locks.release_commit_lock(lock)

    assert store.locks.take_commit_lock(TABLE, "batch-c").known_head == 3


def test_a_plan_is_one_run_s_at_a_time_until_it_ends_or_goes_silent(store: Store, clock: Clock):
    store.locks.take_lease("launch b1", "run-1")
    store.locks.take_lease("launch b2", "run-2")

    with pytest.raises(PlanLeasedError, match="run-1 is at work on launch b1"):
        store.locks.take_lease("launch b1", "run-2")
    store.locks.release_lease("launch b1", "run-1")
    store.locks.take_lease("launch b1", "run-2")
    clock.pass_by(LEASE + 1)
    store.locks.take_lease("launch b1", "run-3")
    store.locks.release_lease("launch b1", "run-2")
    with pytest.raises(PlanLeasedError, match="run-3"):
        store.locks.take_lease("launch b1", "run-2")


def test_a_commit_that_changes_no_row_moves_those_who_read_the_one_before_it_alone(store: Store):
    fill(store, Asked(start=0, end=3))
    store.environments.save_environment(Environment("held", protected=True))
    store.environments.ensure_pointer(Pointer("held", "orders", "p", TABLE, 0), "/data/orders")
    fill(store, Asked(start=3, end=5))
    lock = store.locks.take_commit_lock(TABLE, "join")

    store.locks.follow_head(lock, 2, NOON)

    pins = {
        name: store.environments.pointers(name)["orders"].delta_version for name in ("prod", "held")
    }
    assert pins == {"prod": 2, "held": 0}
    assert store.versions.known_head(TABLE) == 2
