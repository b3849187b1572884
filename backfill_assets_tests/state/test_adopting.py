"""Commits that a restored state has never heard of: which count, and as of when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals import IntervalSet
from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.snapshots.observation import Observation, ObservedSource
from backfill_assets.snapshots.publication import PROMOTED, Move, PublicationKind
from backfill_assets.snapshots.ready import InputPin
from backfill_assets_tests.state.building import (
    NOON,
    Asked,
    add_model,
    commit_of,
    content,
    fill,
    owe,
    version_of,
    write,
)
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.snapshots.batch import BatchCommit
    from backfill_assets.state.store import Store

FAR = 1_000
"""A number that the counter of the backup has not reached."""
ORDERS, REVENUE = "orders", "revenue"


def unknown(store: Store, model: str, *pins: InputPin, **said: object) -> BatchCommit:
    """A commit of a batch that only the lost state has opened."""
    opened = store.batches.open_batch(Asked(model=model, run="lost").request)
    lock = store.locks.take_commit_lock(version_of(model), "lost")
    store.locks.release_commit_lock(lock)
    given = {"batch_id": f"unknown/{model}", "built_at": FAR, "inputs": pins, **said}
    store.batches.fail_batch(opened.request.batch_id, error="", audits=(), finished_at=NOON)
    return replace(commit_of(opened, lock), **given)


def adopted(store: Store, commit: BatchCommit) -> bool:
    lock = store.locks.take_commit_lock(commit.version, "adopter")
    at = store.versions.known_head(commit.version) + 1
    done = store.batches.adopt(commit, lock, at, bytes_written=None, finished_at=NOON)
    store.locks.release_commit_lock(lock)
    return done


def pin(model: str, delta_version: int) -> InputPin:
    return InputPin(model, version_of(model), f"/data/{version_of(model)}", delta_version)


def both(store: Store) -> None:
    for model in (ORDERS, REVENUE):
        add_model(store, model)


def without(store: Store, gone: IntervalSet) -> None:
    """Take cells of orders away, as the undo of a plan that had brought them does."""
    at = store.environments.pointers("prod")[ORDERS]
    after = replace(at, delta_version=at.delta_version + 1)
    Trial(store).publish(Move.of(after, at, emptied=gone), kind=PublicationKind.UNDO)


def test_what_is_built_after_an_adoption_has_a_larger_number(store: Store):
    both(store)
    assert adopted(store, unknown(store, ORDERS))
    (record, *_) = store.versions.ready_records(version_of(ORDERS))
    assert store.views.of("prod").counter > FAR
    assert record.built_at <= store.views.of("prod").counter
    later = store.batches.open_batch(Asked(model=ORDERS, run="later").request)
    assert later.built_at > FAR


def test_an_upstream_that_moved_after_the_pin_of_an_adopted_batch_is_newer_than_it(store: Store):
    both(store)
    fill(store, Asked(model=ORDERS))
    opened = store.batches.open_batch(Asked(model=ORDERS, run="moved").request)
    write(store, opened, dict.fromkeys(Asked().request.cells, content(11)))
    assert adopted(store, unknown(store, REVENUE, pin(ORDERS, 0)))
    (upstream, *_) = store.versions.ready_records(version_of(ORDERS))
    (record, *_) = store.versions.ready_records(version_of(REVENUE))
    assert upstream.changed_at.row_set > record.built_at


def test_an_upstream_that_did_not_move_leaves_an_adopted_batch_fresh(store: Store):
    both(store)
    fill(store, Asked(model=ORDERS))
    assert adopted(store, unknown(store, REVENUE, pin(ORDERS, 0)))
    (upstream, *_) = store.versions.ready_records(version_of(ORDERS))
    (record, *_) = store.versions.ready_records(version_of(REVENUE))
    assert upstream.changed_at.row_set <= record.built_at


@pytest.mark.parametrize("at", [-1, 0, 1, 2])
def test_a_batch_counts_whose_pin_is_that_of_no_commit_a_batch_a_copy_or_cells_that_went(
    store: Store, at: int
):
    both(store)
    fill(store, Asked(model=ORDERS))
    trial = Trial(store)
    trial.in_place(ORDERS, cells((0, 1)))
    trial.open()
    trial.fill(ORDERS, 0, 1)
    trial.promote()
    without(store, cells((2, 3)))

    assert adopted(store, unknown(store, REVENUE, pin(ORDERS, at)))


def test_a_batch_that_this_state_has_opened_keeps_its_number(store: Store):
    both(store)
    fill(store, Asked(model=ORDERS))
    opened = store.batches.open_batch(
        Asked(model=REVENUE, run="ours", reads={ORDERS: cells((0, 3))}).request
    )
    fill(store, Asked(model=ORDERS, run="later"))
    lock = store.locks.take_commit_lock(version_of(REVENUE), "ours")
    store.locks.release_commit_lock(lock)

    assert adopted(store, commit_of(opened, lock))

    records = store.versions.ready_records(version_of(REVENUE))
    assert {record.built_at for record in records} == {opened.built_at}


def test_a_batch_of_a_table_that_the_environment_has_left_does_not_count(store: Store):
    both(store)
    commit = unknown(store, ORDERS)
    trial = Trial(store)
    trial.new_version(ORDERS)
    trial.open()
    trial.promote()

    assert not adopted(store, commit)


@pytest.mark.parametrize(
    ("at", "folder", "counts"),
    [(3, "raw", True), (4, "raw", True), (2, "raw", False), (3, "old", False)],
)
def test_a_batch_counts_that_has_read_a_source_as_it_was_seen_or_later(
    store: Store, at: int, folder: str, *, counts: bool
):
    """Of what came between an older pin and the last look at the source, no later look will tell."""
    both(store)
    seen = ObservedSource("raw", "/lake/raw", "", "days", 3)
    store.sources.observe(Observation(seen, None, (), anew=True))

    assert (
        adopted(store, unknown(store, ORDERS, InputPin("raw", "", f"/lake/{folder}", at))) is counts
    )


def test_a_batch_that_has_read_a_commit_which_does_not_count_does_not_count_either(store: Store):
    both(store)
    fill(store, Asked(model=ORDERS))
    for run in ("run-1", "run-2"):
        fill(store, Asked(model=REVENUE, run=run))
    before = store.versions.ready_records(version_of(REVENUE))
    assert not adopted(store, unknown(store, REVENUE, pin(ORDERS, 1)))
    assert store.versions.ready_records(version_of(REVENUE)) == before


def test_a_batch_that_has_read_another_table_than_the_environment_does_not_count(store: Store):
    both(store)
    other = InputPin(ORDERS, "orders__v2", "/data/orders__v2", 0)
    assert not adopted(store, unknown(store, REVENUE, other))


def test_the_copy_of_an_unknown_promotion_does_not_count_but_raises_the_counter(store: Store):
    both(store)
    copy = unknown(store, ORDERS, reason=PROMOTED, plan_id="p1", built_at=FAR)
    assert not adopted(store, copy)
    assert store.views.of("prod").counter >= FAR


def test_an_adopted_batch_owes_what_it_has_read_of_cells_that_are_published_no_more(store: Store):
    both(store)
    fill(store, Asked(model=ORDERS))
    store.environments.save_environment(Environment("other", protected=False))
    at = Pointer("other", REVENUE, "print", version_of(REVENUE), 0)
    store.environments.ensure_pointer(at, "/data/revenue")
    without(store, cells((2, 3)))

    assert adopted(store, unknown(store, REVENUE, pin(ORDERS, 0)))

    view = store.views.of("prod")
    assert view.owed[REVENUE] == view.ready(REVENUE) != IntervalSet.empty()
    assert store.views.of("other").owed == {}


def test_cells_that_were_declared_wrong_stay_owed_whatever_is_adopted(store: Store):
    both(store)
    commit = unknown(store, ORDERS)
    owe(store, version_of(ORDERS), IntervalSet.of(Asked().request.cells), "sent twice")
    assert adopted(store, commit)
    view = store.views.of("prod")
    assert view.owed[ORDERS] == view.ready(ORDERS) != IntervalSet.empty()
