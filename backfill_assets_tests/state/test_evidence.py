"""A plan owes evidence from the transaction that ends it; what is kept of it forms one chain."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.snapshots.stored_plan import ENDS, PlanStatus, StoredPlan
from backfill_assets_tests.state.building import NOON

if TYPE_CHECKING:
    from backfill_assets.state.store import Store

PLAN = StoredPlan(
    plan_id="p1",
    environment="prod",
    status=PlanStatus.PROPOSED,
    content="{}",
    content_hash="of p1",
    created_at=NOON,
    created_by="ada",
    reason="",
    expires_at=NOON + timedelta(days=7),
)


@pytest.mark.parametrize("status", [*PlanStatus])
def test_a_plan_owes_evidence_once_it_has_ended_and_not_before(store: Store, status: PlanStatus):
    store.plans.save_plan(PLAN)

    store.plans.set_plan_status("p1", PlanStatus.PROPOSED, status)

    owed = [(record.plan_id, record.ended) for record in store.evidence.owed()]
    assert owed == ([("p1", status.value)] if status in ENDS else [])


def test_a_status_that_is_refused_owes_nothing(store: Store):
    store.plans.save_plan(PLAN)

    with pytest.raises(RequestError):
        store.plans.set_plan_status("p1", PlanStatus.BUILT, PlanStatus.ABANDONED)

    assert store.evidence.owed() == []


def test_what_is_kept_takes_the_next_place_in_the_order_in_which_it_is_made(store: Store):
    first, second = store.evidence.owe("p1", "stopped", "no disk"), store.evidence.owe("p2", "x")
    assert store.evidence.last() is None

    store.evidence.keep(second, "manifest 2", "sha 2", "noted 2", place=1)
    store.evidence.keep(first, "manifest 1", "sha 1", "noted 1", place=2)

    last = store.evidence.last()
    assert last is not None
    assert (last.plan_id, last.place, last.sha256, last.why) == ("p1", 2, "sha 1", "no disk")
    assert [record.place for record in store.evidence.of_plan("p2")] == [1]


def test_evidence_is_owed_until_its_folder_holds_it(store: Store):
    record = store.evidence.owe("p1", "abandoned")
    store.evidence.keep(record, "manifest", "sha", "noted", place=1)
    assert [found.manifest for found in store.evidence.owed()] == ["manifest"]

    store.evidence.mark_written(record)

    assert store.evidence.owed() == []
    assert store.evidence.of_plan("p1") == [
        replace(record, place=1, manifest="manifest", sha256="sha", noted="noted", written=True)
    ]


def test_of_one_end_one_manifest_is_kept_and_no_place_is_given_twice(store: Store):
    first, second = store.evidence.owe("p1", "stopped"), store.evidence.owe("p2", "stopped")
    assert store.evidence.keep(first, "manifest 1", "sha 1", "noted", place=1)

    assert not store.evidence.keep(first, "another", "sha", "noted", place=2)
    assert not store.evidence.keep(second, "manifest 2", "sha 2", "noted", place=1)

    assert [record.manifest for record in store.evidence.of_plan("p1")] == ["manifest 1"]
    assert [record.manifest for record in store.evidence.of_plan("p2")] == [None]


def test_one_process_alone_says_that_a_folder_holds_its_evidence(store: Store):
    record = store.evidence.owe("p1", "abandoned")
    store.evidence.keep(record, "manifest", "sha", "noted", place=1)

    assert store.evidence.mark_written(record)
    assert not store.evidence.mark_written(record)
