from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.publication import IntentStatus, PublicationKind
from backfill_assets.state.locks import TableLockedError
from backfill_assets.state.promotions import PromotionPendingError, PromotionTakenOverError
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets_tests.state.building import (
    LEASE,
    Asked,
    add_model,
    check_lock,
    fill,
    open_promotions,
)
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

TABLE = "orders__v1"


def test_an_intent_is_there_before_anything_else_happens(store: Store, other: Store):
    begun = Trial(store).begin(TABLE)
    assert begun.number > 0
    assert open_promotions(other) == [begun]
    assert other.publications.promotion("p1") == begun
    assert other.publications.promotion("p2") is None


def test_an_intent_needs_tables_that_exist(store: Store):
    with pytest.raises(UnknownVersionError):
        Trial(store).begin("orders__v9")
    assert open_promotions(store) == []


def test_while_it_is_open_only_its_holder_commits_there(store: Store):
    add_model(store, "revenue")
    Trial(store).begin(TABLE, holder="boss")

    with pytest.raises(TableLockedError, match="promote of plan p1"):
        store.locks.take_commit_lock(TABLE, "run-9")
    store.locks.take_commit_lock("revenue__v1", "run-9")
    store.locks.release_commit_lock(store.locks.take_commit_lock(TABLE, "boss"))


def test_a_batch_of_the_run_that_finishes_a_dead_one_waits_like_anybody(store: Store, clock: Clock):
    trial = Trial(store)
    trial.begin(TABLE, holder="boss")
    clock.pass_by(LEASE + 1)
    opened = store.batches.open_batch(Asked(run="heir").request)
    trial.begin(TABLE, holder="heir")
    with pytest.raises(TableLockedError, match="promote of plan p1"):
        store.locks.take_commit_lock(TABLE, opened.request.batch_id)


def test_one_that_its_run_has_let_go_of_is_finished_by_any_other_although_that_run_lives(
    store: Store,
):
    trial = Trial(store)
    begun = trial.begin(TABLE, holder="boss")
    store.locks.take_commit_lock(TABLE, "boss")

    store.publications.let_go_of_promotion(begun)
    store.batches.heartbeat("boss")

    with pytest.raises(PromotionPendingError, match="was begun and never finished"):
        store.locks.take_commit_lock(TABLE, "run-9")
    heir = trial.begin(TABLE, holder="heir")
    store.locks.take_commit_lock(TABLE, "heir")
    store.publications.let_go_of_promotion(begun)  # it is not its own any more
    assert open_promotions(store) == [heir]


def test_one_that_is_published_stays_its_runs_own_though_an_error_comes_afterwards(store: Store):
    """So the run that is asked again knows that it has published."""
    fill(store, Asked(start=0, end=5))
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 5)
    trial.promote()
    published = store.publications.promotion("p1")
    assert published is not None

    store.publications.let_go_of_promotion(published)

    assert store.publications.promotion("p1") == published


def test_one_that_was_published_meanwhile_is_not_begun_again(store: Store, clock: Clock):
    trial = Trial(store)
    dead = trial.begin(TABLE, holder="boss")
    store.publications.note_promotion(dead, {"copied": ["orders"]})
    clock.pass_by(LEASE + 1)
    store.publications.withdraw_promotion(trial.begin(TABLE, holder="heir"))
    with pytest.raises(PromotionTakenOverError, match="withdrawn"):
        store.publications.begin_promotion(replace(dead, holder="late"))
    assert open_promotions(store) == []


def test_a_batch_that_holds_the_lock_already_ends_first(store: Store):
    lock = store.locks.take_commit_lock(TABLE, "run-9")
    Trial(store).begin(TABLE)
    check_lock(store, lock)
    with pytest.raises(TableLockedError, match="run-9"):
        store.locks.take_commit_lock(TABLE, "boss")


def test_a_dead_one_must_be_finished_before_anybody_goes_on(store: Store, clock: Clock):
    Trial(store).begin(TABLE)
    clock.pass_by(LEASE + 1)

    with pytest.raises(PromotionPendingError, match="backfill promote p1") as pending:
        store.locks.take_commit_lock(TABLE, "run-9")
    assert pending.value.plan_id == "p1"
    with pytest.raises(PromotionPendingError):
        Trial(store, "p2").begin(TABLE)


def test_a_way_back_does_not_take_over_the_dead_promotion_of_its_plan(store: Store, clock: Clock):
    trial = Trial(store)
    trial.begin(TABLE)
    clock.pass_by(LEASE + 1)
    with pytest.raises(PromotionPendingError, match="the promote of plan p1"):
        trial.begin(TABLE, kind=PublicationKind.ROLLBACK, holder="heir")


def test_a_heartbeat_of_its_run_keeps_it(store: Store, clock: Clock):
    trial = Trial(store)
    trial.begin(TABLE, holder="boss")
    clock.pass_by(LEASE - 1)
    store.batches.heartbeat("boss")
    clock.pass_by(LEASE - 1)
    with pytest.raises(TableLockedError):
        store.locks.take_commit_lock(TABLE, "run-9")
    with pytest.raises(TableLockedError):
        Trial(store, "p2").begin(TABLE)


def test_another_run_takes_a_dead_one_over_with_the_steps_that_it_noted(store: Store, clock: Clock):
    trial = Trial(store)
    begun = trial.begin(TABLE, holder="boss")
    store.publications.note_promotion(begun, {"copied": ["orders"], "at": {"orders": 7}})
    with pytest.raises(TableLockedError):
        trial.begin(TABLE, holder="heir")
    clock.pass_by(LEASE + 1)

    taken = trial.begin(TABLE, holder="heir")
    assert (taken.number, taken.holder) == (begun.number, "heir")
    assert taken.steps == {"copied": ("orders",), "at": {"orders": 7}}
    with pytest.raises(PromotionTakenOverError, match="held by heir"):
        store.publications.note_promotion(begun, {})
    store.locks.take_commit_lock(TABLE, "heir")


def test_the_same_holder_finds_its_own_again(store: Store):
    trial = Trial(store)
    begun = trial.begin(TABLE)
    assert trial.begin(TABLE).number == begun.number
    assert len(open_promotions(store)) == 1


def test_a_withdrawn_intent_closes_nothing_and_its_locks_are_free(store: Store):
    begun = Trial(store).begin(TABLE, holder="boss")
    store.locks.take_commit_lock(TABLE, "boss")
    store.publications.withdraw_promotion(begun)

    assert open_promotions(store) == []
    store.locks.take_commit_lock(TABLE, "run-9")
    withdrawn = store.publications.promotion("p1")
    assert withdrawn is not None
    assert withdrawn.status is IntentStatus.WITHDRAWN
    with pytest.raises(PromotionTakenOverError, match="withdrawn"):
        store.publications.withdraw_promotion(begun)
    again = Trial(store).begin(TABLE)
    assert again.number > begun.number
    assert replace(again, number=0).status is IntentStatus.OPEN
