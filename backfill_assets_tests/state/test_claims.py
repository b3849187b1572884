from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state.claims import CellsClaimedError, LostClaimError
from backfill_assets_tests.state.building import LEASE, NOON, Asked, days, fill, write

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock


def test_two_runs_cannot_hold_the_same_cell_and_the_second_learns_who_does(
    store: Store, other: Store
):
    store.batches.open_batch(Asked(start=0, end=3).request)

    with pytest.raises(CellsClaimedError) as refused:
        other.batches.open_batch(Asked(start=2, end=5, run="run-2").request)

    assert refused.value.run_id == "run-1"
    assert refused.value.interval == days(0, 3)
    assert refused.value.since == NOON
    assert "run run-1" in str(refused.value)


def test_a_refused_batch_leaves_no_trace(store: Store, other: Store):
    first = store.batches.open_batch(Asked(start=0, end=3).request)
    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(start=2, end=5, run="run-2").request)

    assert [each.batch_id for each in store.batches.latest()] == [first.request.batch_id]
    assert store.batches.open_batch(Asked(start=3, end=5).request).built_at == first.built_at + 1


def test_neighbouring_cells_are_free(store: Store, other: Store):
    store.batches.open_batch(Asked(start=0, end=3).request)
    other.batches.open_batch(Asked(start=3, end=5, run="run-2").request)

    assert store.views.of("prod").claimed == {"orders": IntervalSet.of([days(0, 5)])}


def test_a_claim_silent_for_longer_than_the_lease_is_taken_over_and_its_batch_abandoned(
    store: Store, other: Store, clock: Clock
):
    dead = store.batches.open_batch(Asked(start=0, end=3).request)
    clock.pass_by(LEASE + 1)
    assert store.views.of("prod").claimed == {}

    other.batches.open_batch(Asked(start=2, end=5, run="run-2").request)

    assert store.batches.get(dead.request.batch_id).status == "abandoned"
    with pytest.raises(LostClaimError):
        store.batches.check_claims(dead.request.batch_id)


def test_a_heartbeat_keeps_a_claim_alive(store: Store, other: Store, clock: Clock):
    store.batches.open_batch(Asked(start=0, end=3).request)
    clock.pass_by(LEASE - 1)
    store.batches.heartbeat("run-1")
    clock.pass_by(LEASE - 1)

    with pytest.raises(CellsClaimedError):
        other.batches.open_batch(Asked(start=2, end=5, run="run-2").request)


def test_a_slow_batch_whose_cells_nobody_wanted_goes_on(store: Store, clock: Clock):
    slow = store.batches.open_batch(Asked(start=0, end=3).request)
    clock.pass_by(LEASE * 10)
    store.batches.open_batch(Asked(start=3, end=5, run="run-2").request)

    store.batches.check_claims(slow.request.batch_id)
    write(store, slow)
    assert store.batches.get(slow.request.batch_id).status == "committed"


def test_a_batch_that_its_own_run_tries_again_begins_anew(store: Store):
    first = store.batches.open_batch(Asked(start=0, end=3).request)
    again = store.batches.open_batch(Asked(start=0, end=3, attempt=2).request)

    assert again.built_at > first.built_at
    assert store.batches.get(again.request.batch_id).attempt == 2
    assert store.batches.attempts("orders__v1", IntervalSet.of([days(0, 3)])) == 2


def test_a_run_that_cuts_its_cells_anew_abandons_its_own_older_attempt(store: Store):
    older = store.batches.open_batch(Asked(start=0, end=3).request)
    store.batches.open_batch(Asked(start=1, end=5).request)

    assert store.batches.get(older.request.batch_id).status == "abandoned"


def test_a_failed_batch_gives_its_cells_back(store: Store, other: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3).request)
    store.batches.fail_batch(opened.request.batch_id, error="boom", audits=(), finished_at=NOON)

    other.batches.open_batch(Asked(start=2, end=5, run="run-2").request)


def test_rows_may_move_into_a_cell_that_nobody_holds(store: Store, other: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3).request)
    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(7, 8), days(2, 3)]))

    with pytest.raises(CellsClaimedError) as refused:
        other.batches.open_batch(Asked(start=5, end=9, run="run-2").request)
    assert refused.value.interval == days(7, 8)


def test_rows_may_not_move_into_a_cell_that_another_batch_of_the_same_run_builds(store: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3).request)
    store.batches.open_batch(Asked(start=3, end=6).request)

    with pytest.raises(CellsClaimedError):
        store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(4, 5)]))


def test_a_silent_batch_whose_cells_rows_move_out_of_is_abandoned(
    store: Store, other: Store, clock: Clock
):
    silent = other.batches.open_batch(Asked(start=3, end=6, run="run-2").request)
    clock.pass_by(LEASE + 1)
    opened = store.batches.open_batch(Asked(start=0, end=3).request)

    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(4, 5)]))

    assert store.batches.get(silent.request.batch_id).status == "abandoned"
    with pytest.raises(LostClaimError):
        other.batches.check_claims(silent.request.batch_id)


def test_cells_that_rows_move_out_of_may_be_claimed_again(store: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3).request)
    for _ in range(2):  # the state did not answer the first time
        store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(7, 8)]))

    assert store.views.of("prod").claimed == {"orders": IntervalSet.of([days(0, 3), days(7, 8)])}


def test_a_batch_of_several_stretches_holds_these_and_nothing_between_them(store: Store):
    several = Asked(start=0, end=2, also=((5, 6), (8, 10)))
    store.batches.open_batch(several.request)

    store.batches.open_batch(Asked(start=2, end=5, run="run-2").request)
    with pytest.raises(CellsClaimedError) as refused:
        store.batches.open_batch(Asked(start=6, end=9, run="run-3").request)

    assert refused.value.interval == days(8, 10)
    held = IntervalSet.of([days(0, 6), days(8, 10)])
    assert store.views.of("prod").claimed["orders"] == held


def test_a_batch_of_several_stretches_takes_one_slot(store: Store):
    several = Asked(start=0, end=2, also=((5, 6), (8, 10)), slots=Slots(2, None))
    store.batches.open_batch(several.request)
    store.batches.open_batch(replace(several, start=20, end=21, also=(), run="run-2").request)

    found = [batch.stretches for batch in store.limits.in_flight()]
    assert found == [several.request.stretches, IntervalSet.of([days(20, 21)])]


def test_a_committed_batch_of_several_stretches_makes_these_ready_and_gives_all_back(store: Store):
    several = Asked(start=0, end=2, also=((5, 6), (8, 10)))
    fill(store, several)

    view, (row,) = store.views.of("prod"), store.batches.latest()
    assert view.ready("orders") == row.stretches == several.request.stretches
    assert view.claimed == {}
    assert view.models["orders"].bytes_per_second == pytest.approx(100 / (5 * 86_400))


def test_a_failed_batch_of_several_stretches_failed_in_these_alone(store: Store):
    several = Asked(start=0, end=2, also=((5, 6),))
    opened = store.batches.open_batch(several.request)
    store.batches.fail_batch(
        opened.request.batch_id, error="no", audits=(), failure=FailureKind.AUDIT, finished_at=NOON
    )

    (failed,) = store.batches.failed_batches(["orders__v1"])
    assert failed.cells == several.request.stretches


def test_what_is_owed_between_the_stretches_of_a_batch_stays_owed(store: Store):
    fill(store, Asked(start=0, end=10))
    store.environments.mark_owed_everywhere("orders", IntervalSet.of([days(0, 10)]), "wrong")
    fill(store, Asked(start=0, end=2, also=((5, 6),), run="run-2"))

    left = IntervalSet.of([days(2, 5), days(6, 10)])
    assert store.views.of("prod").owed["orders"] == left


def test_a_batch_waits_for_cells_that_rows_of_its_own_run_move_into(store: Store):
    opened = store.batches.open_batch(Asked(start=0, end=3).request)
    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(4, 5)]))

    with pytest.raises(CellsClaimedError):
        store.batches.open_batch(Asked(start=3, end=6).request)


def test_a_batch_that_lost_its_cells_gets_no_more(store: Store, other: Store, clock: Clock):
    dead = store.batches.open_batch(Asked(start=0, end=3).request)
    clock.pass_by(LEASE + 1)
    other.batches.open_batch(Asked(start=0, end=3, run="run-2").request)

    with pytest.raises(LostClaimError):
        store.batches.claim_more(dead.request.batch_id, IntervalSet.of([days(7, 8)]))
