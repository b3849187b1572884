from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.stored_plan import OPEN, PlanEventKind, PlanStatus, StoredPlan
from backfill_assets.state.plans import NewEvent, UnknownPlanError
from backfill_assets_tests.state.building import NOON
from backfill_assets_tests.state.publishing import cells

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock


def _plan(plan_id: str, day: int = 0, environment: str = "prod") -> StoredPlan:
    return StoredPlan(
        plan_id=plan_id, environment=environment, status=PlanStatus.PROPOSED, content='{"a":1}',
        content_hash=f"of {plan_id}", created_at=NOON + timedelta(days=day), created_by="ada",
        reason="late rows", expires_at=NOON + timedelta(days=day + 7),
        cells=CellsByModel({"orders": cells((0, 3), (5, 6))}),
    )  # fmt: skip


def test_a_plan_is_read_back_as_it_was_saved(store: Store):
    saved = _plan("p1a2b")
    store.plans.save_plan(saved)
    assert store.plans.get("p1a2b") == saved


def test_what_a_plan_becomes_and_its_event_are_one(store: Store):
    kept = NewEvent("p1", PlanEventKind.NEEDED, "ada", "late rows")
    store.plans.save_plan(_plan("p1"), kept)
    begun = NewEvent("p1", PlanEventKind.APPLYING, "ada", "")
    store.plans.set_plan_status("p1", PlanStatus.PROPOSED, PlanStatus.APPLYING, begun)
    with pytest.raises(RequestError):
        store.plans.set_plan_status("p1", PlanStatus.PROPOSED, PlanStatus.APPLYING, begun)
    with pytest.raises(RequestError):
        store.plans.save_plan(replace(_plan("p1"), content_hash="of another"), kept)

    told = [event.event for event in store.plans.events("p1")]
    assert told == [PlanEventKind.NEEDED, PlanEventKind.APPLYING]


def test_a_plan_is_found_by_the_beginning_of_its_id(store: Store):
    for plan_id in ("p1a2b", "p1c", "p9"):
        store.plans.save_plan(_plan(plan_id))

    assert store.plans.get("p9").plan_id == "p9"
    assert store.plans.get("p1a").plan_id == "p1a2b"
    with pytest.raises(RequestError, match="matches several plans: p1a2b, p1c"):
        store.plans.get("p1")
    for unknown in ("x", "", "%", "p_"):
        with pytest.raises(UnknownPlanError, match="p1a2b"):
            store.plans.get(unknown)


def test_a_whole_id_is_that_plan_though_another_begins_with_it(store: Store):
    store.plans.save_plan(_plan("p1"))
    store.plans.save_plan(_plan("p12"))
    assert store.plans.get("p1").plan_id == "p1"


def test_without_plans_the_error_says_how_to_make_one(store: Store):
    with pytest.raises(UnknownPlanError, match=r"there is none yet.*backfill plan"):
        store.plans.get("p1")


def test_plans_are_listed_the_latest_first(store: Store):
    store.plans.save_plan(_plan("p1", day=0))
    store.plans.save_plan(_plan("p2", day=2))
    store.plans.save_plan(_plan("p3", day=1, environment="dev"))

    assert [each.plan_id for each in store.plans.latest()] == ["p2", "p3", "p1"]
    assert [each.plan_id for each in store.plans.latest("prod")] == ["p2", "p1"]
    store.plans.set_plan_status("p1", PlanStatus.PROPOSED, PlanStatus.APPLYING)
    assert [each.plan_id for each in store.plans.latest(statuses=OPEN)] == ["p1"]


def test_saving_a_plan_again_keeps_where_its_life_stands(store: Store):
    store.plans.save_plan(_plan("p1"))
    store.plans.set_plan_status("p1", PlanStatus.PROPOSED, PlanStatus.APPLYING)
    store.plans.save_plan(_plan("p1"))

    assert store.plans.get("p1").status is PlanStatus.APPLYING
    with pytest.raises(RequestError, match="already, with other content; an id is"):
        store.plans.save_plan(replace(_plan("p1"), content_hash="of another"))


def test_a_status_moves_only_from_where_it_is_believed_to_be(store: Store):
    store.plans.save_plan(_plan("p1"))
    with pytest.raises(RequestError, match="is proposed; expected applying or built"):
        store.plans.set_plan_status("p1", OPEN, PlanStatus.ABANDONED)
    assert store.plans.get("p1").status is PlanStatus.PROPOSED


def test_what_happens_to_a_plan_is_told_in_order(store: Store, clock: Clock):
    store.plans.save_plan(_plan("p1"))
    store.plans.tell(
        "p1",
        PlanEventKind.APPLYING,
        who="ada",
        why="late rows",
        detail={"cells": 4, "of": ["orders"]},
    )
    clock.pass_by(60)
    store.plans.tell("p1", PlanEventKind.BUILT, who="bob")

    first, second = store.plans.events("p1")
    assert (first.number, first.event, first.who, first.at) == (1, "applying", "ada", NOON)
    assert first.detail == {"cells": 4, "of": ("orders",)}
    assert (second.number, second.event) == (2, "built")
    assert second.at == NOON + timedelta(seconds=60)
    with pytest.raises(UnknownPlanError):
        store.plans.tell("p2", PlanEventKind.BUILT, who="bob")
