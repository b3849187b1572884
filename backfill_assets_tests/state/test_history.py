from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.publication import Move, PublicationKind
from backfill_assets_tests.state.building import Asked, add_model, fill
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock


def _lived(store: Store, clock: Clock) -> None:
    """Ten days are filled, some restated by a plan, promoted and moved back; a day is added."""
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 10))
    fill(store, Asked("revenue", 0, 10))
    clock.pass_by(60)
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.save()
    clock.pass_by(60)
    trial.open()
    trial.fill("orders", 2, 4)
    clock.pass_by(60)
    trial.promote()
    clock.pass_by(60)
    now = store.environments.pointers("prod")["orders"]
    back = Move(pointer=now, old_version=now.version, old_fingerprint=now.fingerprint)
    trial.publish(back, kind=PublicationKind.ROLLBACK)
    clock.pass_by(60)
    fill(store, Asked("orders", 10, 11))


def test_everything_that_touched_a_model_is_told_the_newest_last(store: Store, clock: Clock):
    _lived(store, clock)
    told = store.history.of_model("orders")

    assert [(each.what, each.plan_id, each.environment) for each in told] == [
        ("batch", None, "prod"),
        ("plan", "p1", "prod"),
        ("batch", "p1", "plan:p1"),
        ("promote", "p1", "prod"),
        ("rollback", "p1", "prod"),
        ("batch", None, "prod"),
    ]
    plan, promoted = told[1], told[3]
    assert (plan.who, plan.why, plan.cells) == ("ada", "it was wrong", cells((2, 4)))
    assert plan.status == "rolled back"
    assert (promoted.who, promoted.why, promoted.cells) == ("ada", "for good", cells((2, 4)))
    assert promoted.version == "orders__v1"
    assert told[0].batch_id == "run-1/orders__v1/0-10"


def test_only_what_touched_the_cells_is_told_when_they_are_named(store: Store, clock: Clock):
    _lived(store, clock)

    def kinds_of(start: int, end: int) -> list[str]:
        return [each.what for each in store.history.of_model("orders", cells((start, end)))]

    assert kinds_of(2, 3) == ["batch", "plan", "batch", "promote"]
    assert kinds_of(5, 6) == ["batch"]
    assert kinds_of(10, 11) == ["batch"]
    assert store.history.of_model("orders", cells((20, 21))) == []


def test_what_removed_a_model_touched_all_of_it(store: Store):
    fill(store, Asked("orders", 0, 2))
    trial = Trial(store)
    trial.open()
    trial.publish(removed=("orders",))
    assert [each.what for each in store.history.of_model("orders", cells((1, 2)))] == [
        "batch",
        "promote",
    ]
