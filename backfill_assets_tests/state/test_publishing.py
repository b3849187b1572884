from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.snapshots.environment import Environment, Layer, Pointer
from backfill_assets.snapshots.publication import (
    Copy,
    IntentStatus,
    Move,
    Publication,
    PublicationKind,
    TakenAway,
)
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.snapshots.workspace import OwedCells
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.locks import LostLeaseError
from backfill_assets.state.promotions import PromotionTakenOverError
from backfill_assets.state.publications import PinMovedError, PointerMovedError
from backfill_assets_tests.state.building import (
    LEASE,
    NOON,
    Asked,
    add_model,
    content,
    days,
    each_day,
    fill,
    open_promotions,
    owe,
)
from backfill_assets_tests.state.publishing import NONE, Trial, cells

if TYPE_CHECKING:
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.ready import ReadyRecord
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

DEV = Environment("dev", protected=False, follows="prod")


def _records(
    store: Store, version: str = "orders__v1", at: int | None = None
) -> dict[Interval, ReadyRecord]:
    return {each.cell: each for each in store.versions.ready_records(version, at)}


def _stamps(record: ReadyRecord) -> set[int]:
    return {record.changed_at.row_set, *record.changed_at.columns.values()}


def _restated(store: Store) -> Trial:
    """Four of ten days are restated, one of them comes out different."""
    fill(store, Asked(start=0, end=10))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 6)))
    trial.owed.append(OwedCells("orders__v1", cells((2, 6)), "restated"))
    trial.open()
    held = dict.fromkeys(each_day(2, 6), content(10)) | {days(3, 4): content(10, amount=12)}
    trial.fill("orders", 2, 6, held)
    trial.save()
    return trial


def test_a_copy_replaces_records_and_stamps_only_what_really_differs(store: Store):
    trial = _restated(store)
    before, built = _records(store), _records(store, "orders__v1__p1")
    number = trial.promote()

    after = _records(store)
    assert store.environments.pointers("prod")["orders"] == Pointer(
        "prod", "orders", "print-orders", "orders__v1", 1
    )
    assert {after[day].built_at for day in each_day(2, 6)} == {number}
    assert after[days(2, 3)].changed_at == before[days(2, 3)].changed_at
    assert after[days(3, 4)].changed_at.row_set == before[days(3, 4)].changed_at.row_set
    assert after[days(3, 4)].changed_at.columns == {"amount": number}
    assert after[days(3, 4)].batch_id == built[days(3, 4)].batch_id
    assert after[days(3, 4)].valid_from == 1
    assert after[days(7, 8)] == before[days(7, 8)]
    assert _records(store, at=0) == {
        **before,
        **{day: replace(before[day], valid_to=1) for day in each_day(2, 6)},
    }
    assert store.versions.known_head("orders__v1") == 1


def test_a_cell_into_which_rows_only_moved_is_as_fresh_as_it_was(store: Store):
    fill(store, Asked("orders", 0, 10))
    (before,) = store.views.of("prod").models["orders"].runs
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.open()
    trial.fill(
        "orders", 2, 4, {days(2, 3): content(9), days(3, 4): content(9), days(5, 6): content(12)}
    )
    number = trial.promote()
    built = {
        cell: (run.built_at, run.changed_at.row_set)
        for run in store.views.of("prod").models["orders"].runs
        for cell in each_day(0, 10)
        if run.interval.contains(cell)
    }
    assert built[days(2, 3)] == (number, number)
    assert built[days(5, 6)] == (before.built_at, number)


def test_a_promotion_tells_everybody_that_it_happened(store: Store):
    trial = _restated(store)
    number = trial.promote()

    assert store.plans.get("p1").status is PlanStatus.PROMOTED
    (told,) = store.plans.events("p1")
    assert (told.event, told.who, told.detail["number"]) == ("promoted", "ada", number)
    finalized = store.environments.finalized("prod")
    assert finalized is not None
    assert (finalized.at, finalized.plan_id, finalized.removed) == (NOON, "p1", ())
    with pytest.raises(UnknownEnvironmentError):
        store.environments.get(trial.workspace)
    (move,) = store.history.moves_of("p1")
    assert store.history.moves_in("prod", number - 1) == [move]
    assert (move.number, move.kind) == (number, PublicationKind.PROMOTE)
    assert (move.cells, move.changed) == (cells((2, 6)), cells((3, 4)))
    assert move.old is not None
    assert move.new is not None
    assert (move.old.delta_version, move.new.delta_version) == (0, 1)
    assert store.history.moves_in("prod", number) == []
    intent = store.publications.promotion("p1")
    assert intent is not None
    assert (intent.status, intent.published) == (IntentStatus.DONE, number)
    assert open_promotions(store) == []


def test_what_was_rebuilt_is_not_owed_any_more_unless_it_was_declared_wrong_again(store: Store):
    trial = _restated(store)
    owe(store, "orders__v1", cells((3, 4)), "wrong again")
    trial.promote()
    assert store.views.of("prod").owed == {"orders": cells((3, 4))}


def test_what_is_owed_of_a_workspaces_table_is_owed_where_its_cells_are_copied_and_no_further(
    store: Store,
):
    trial = _restated(store)
    owe(store, "orders__v1__p1", cells((4, 9)), "wrong again")
    trial.promote()
    assert store.views.of("prod").owed == {"orders": cells((4, 6))}


def test_what_prod_owes_of_a_workspaces_table_is_owed_where_dev_copies_its_cells(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    for plan_id in ("p1", "p2"):  # over prod's table, then into dev's own one
        trial = Trial(store, plan_id, "dev")
        table = trial.in_place("orders", cells((2, 3)))
        trial.open()
        trial.fill("orders", 2, 3)
        owe(store, table, cells((2, 3)), "what it read went", environment="prod")
        trial.promote()
        assert store.views.of("dev").owed == {"orders": cells((2, 3))}


def test_a_new_version_becomes_what_prod_reads_and_old_columns_have_not_changed(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 5))
    fill(store, Asked("revenue", 0, 5))
    before = _records(store)
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    held = dict.fromkeys(each_day(0, 5), content(10, amount=11, tax=4))
    trial.fill("orders", 0, 5, held | {days(4, 5): content(11, amount=11, tax=4)})
    trial.fill("orders", 5, 6)
    number = trial.promote()

    pointer = store.environments.pointers("prod")["orders"]
    assert pointer == Pointer("prod", "orders", "print-orders__v2", "orders__v2", 1)
    assert store.versions.owner("orders__v2") == "prod"
    after = _records(store, "orders__v2")
    old = before[days(0, 1)].changed_at
    assert {each.built_at for each in after.values()} == {number}
    assert after[days(0, 1)].changed_at.row_set == old.row_set
    assert after[days(0, 1)].changed_at.columns == {**old.columns, "tax": number}
    assert _stamps(after[days(4, 5)]) == {number}
    assert _stamps(after[days(5, 6)]) == {number}
    fill(store, Asked("orders", 6, 7, table="orders__v2"))
    assert store.views.of("prod").ready("orders") == cells((0, 7))
    assert store.views.of("prod").models["revenue"].pointer.version == "revenue__v1"


def test_all_models_of_a_plan_move_together_or_none(store: Store):
    add_model(store, "revenue")
    trial = Trial(store)
    for model in ("orders", "revenue"):
        trial.new_version(model)
    trial.open()
    for model in ("orders", "revenue"):
        trial.fill(model, 0, 2)
    moves = [trial.move(model) for model in ("orders", "revenue")]
    before = store.views.of("prod")
    with pytest.raises(PointerMovedError, match="revenue"):
        trial.publish(moves[0], replace(moves[1], old_fingerprint="other"))

    assert store.views.of("prod").models == before.models
    assert store.history.moves_of("p1") == []
    assert [each.number for each in open_promotions(store)] == [
        store.publications.promotion("p1").number  # pyright: ignore[reportOptionalMemberAccess]
    ]
    trial.promote()
    assert {each.version for each in store.environments.pointers("prod").values()} == {
        "orders__v2", "revenue__v2",
    }  # fmt: skip


def test_a_publication_that_is_done_is_not_done_again(store: Store):
    trial = _restated(store)
    intent = trial.begin()
    move = trial.move("orders")
    said = _said(trial, intent.number, move)
    number = store.publications.publish(said)
    state = (
        store.views.of("prod"),
        store.history.moves_of("p1"),
        store.versions.ready_records("orders__v1"),
    )

    assert store.publications.publish(said) == number
    assert (
        store.views.of("prod"),
        store.history.moves_of("p1"),
        store.versions.ready_records("orders__v1"),
    ) == state


def test_only_the_holder_of_an_open_intent_publishes(store: Store, clock: Clock):
    trial = _restated(store)
    intent = trial.begin("orders__v1")
    said = _said(trial, intent.number, trial.move("orders"))
    with pytest.raises(
        RequestError, match="expected the number of an intent that `begin_promotion` returned"
    ):
        store.publications.publish(replace(said, intent=999))
    clock.pass_by(LEASE + 1)
    trial.begin(holder="other")
    with pytest.raises(PromotionTakenOverError, match="held by other"):
        store.publications.publish(said)
    store.publications.withdraw_promotion(replace(intent, holder="other"))
    with pytest.raises(PromotionTakenOverError, match="withdrawn"):
        store.publications.publish(replace(said, holder="other"))
    assert store.environments.pointers("prod")["orders"].delta_version == 0


def test_locks_are_checked_and_released_in_the_same_transaction(store: Store, clock: Clock):
    trial = _restated(store)
    intent = trial.begin("orders__v1")
    said = _said(trial, intent.number, trial.move("orders"))
    lost = store.locks.take_commit_lock("orders__v1", "boss")
    lock = store.locks.take_commit_lock("orders__v1", "boss")
    with pytest.raises(LostLeaseError):
        store.publications.publish(said, [lost])
    store.publications.publish(said, [lock])
    store.locks.take_commit_lock("orders__v1", "somebody")


def test_dev_gets_a_table_over_that_of_prod(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    prod = store.views.of("prod")
    trial = Trial(store, environment="dev")
    trial.in_place("orders", cells((2, 3)))
    trial.owed.append(OwedCells("orders__v1", cells((2, 3)), "restated"))
    trial.open()
    trial.fill("orders", 2, 3, {days(2, 3): content(12)})
    number = trial.promote()

    assert store.environments.pointers("dev")["orders"] == Pointer(
        "dev", "orders", "print-orders", "orders__v1__p1", 0, (Layer("orders__v1", 0),), NONE
    )
    assert store.versions.owner("orders__v1__p1") == "dev"
    runs = {each.interval: each for each in store.views.of("dev").models["orders"].runs}
    assert runs[days(2, 3)].own
    assert runs[days(2, 3)].changed_at.row_set == number
    assert not runs[days(0, 2)].own
    assert store.views.of("dev").owed == {}
    assert store.views.of("prod").models == prod.models
    fill(store, Asked(start=5, end=6))
    assert store.views.of("dev").ready("orders") == cells((0, 6))

    again = Trial(store, "p2", environment="dev")
    again.in_place("orders", cells((4, 5)))
    again.open()
    assert again.opened[0].pointer.under == (
        Layer("orders__v1__p1", 0), Layer("orders__v1", 1),
    )  # fmt: skip
    again.fill("orders", 4, 5)
    again.promote()
    assert store.environments.pointers("dev")["orders"].version == "orders__v1__p1"
    assert store.views.of("dev").models["orders"].own == cells((2, 3), (4, 5))


def _told(store: Store, plan_id: str) -> tuple[IntervalSet, IntervalSet]:
    """The cells that the last publication of a plan names, and those of them that it calls changed."""
    *_, move = store.history.moves_of(plan_id)
    return move.cells, move.changed


def test_of_a_table_over_another_what_comes_to_light_or_goes_is_told_and_what_stays_is_not(
    store: Store,
):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    over = Trial(store, "p1", "dev")
    over.in_place("orders")
    over.open()
    over.fill("orders", 1, 3, {days(1, 2): content(10), days(2, 3): content(12)})
    fill(store, Asked(start=5, end=6))  # read by dev before and after it
    over.promote()
    assert _told(store, "p1") == (cells((1, 3)), cells((2, 3)))

    alone = Trial(store, "p2", "dev")
    alone.new_version("orders")
    alone.open()
    alone.fill("orders", 0, 6, dict.fromkeys(each_day(0, 6), content(20)))
    alone.promote()
    (move,) = store.history.moves_of("p2")
    assert move.old is not None
    alone.publish(Move.of(move.old, move.new), kind=PublicationKind.ROLLBACK)
    assert _told(store, "p2") == (cells((0, 6)), cells((0, 6)))


def test_of_cells_that_an_undo_takes_out_of_a_table_over_another_those_are_changed_that_differ_below(
    store: Store,
):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    rows = dict.fromkeys(each_day(0, 5), content(10)) | {days(2, 3): content(12)}
    for plan_id, start, end in (("p1", 4, 5), ("p2", 1, 3)):
        over = Trial(store, plan_id, "dev")
        over.in_place("orders")
        over.open()
        over.fill("orders", start, end, {day: rows[day] for day in each_day(start, end)})
        over.promote()
    now = store.environments.pointers("dev")["orders"]
    back = replace(now, delta_version=now.delta_version + 1)
    Trial(store, "p2", "dev").publish(
        Move.of(back, now, emptied=cells((1, 3))), kind=PublicationKind.UNDO
    )

    assert _told(store, "p2") == (cells((1, 3)), cells((2, 3)))
    assert store.views.of("dev").ready("orders") == cells((0, 5))


def test_what_dev_rebuilds_over_prods_table_stays_owed_in_prod_and_of_other_models(store: Store):
    store.environments.save_environment(DEV)
    add_model(store, "revenue")
    for model in ("orders", "revenue"):
        fill(store, Asked(model, 0, 5))
    for environment in ("prod", "dev"):
        owe(store, "orders__v1", cells((2, 3)), "wrong", environment=environment)
    owe(store, "revenue__v1", cells((2, 3)), "wrong")
    trial = Trial(store, environment="dev")
    trial.in_place("orders", cells((2, 3)))
    trial.open()
    trial.fill("orders", 2, 3)
    trial.promote()

    assert store.views.of("dev").owed == {"revenue": cells((2, 3))}
    assert store.views.of("prod").owed == dict.fromkeys(("orders", "revenue"), cells((2, 3)))


def test_what_a_plan_has_rebuilt_in_a_new_table_is_not_owed_where_the_old_one_is_read_again(
    store: Store,
):
    fill(store, Asked(start=0, end=5))
    owe(store, "orders__v1", cells((3, 4)), "wrong everywhere")
    trial = Trial(store)
    trial.new_version("orders")
    trial.owed.append(OwedCells("orders__v1", cells((2, 3)), "restated"))
    trial.open()
    trial.fill("orders", 0, 5)
    trial.promote()
    (promoted,) = store.history.moves_of("p1")
    assert promoted.old is not None
    trial.publish(Move.of(promoted.old, promoted.new), kind=PublicationKind.ROLLBACK)

    assert store.views.of("prod").owed == {"orders": cells((3, 4))}


def test_dev_publishes_nothing_over_what_prod_has_written_since_it_looked(store: Store):
    """No lock of dev keeps prod from its own table; so it is looked at again in the transaction."""
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    for number, start in enumerate((2, 4)):  # over prod's table, then over dev's own one over it
        trial = Trial(store, f"p{number}", environment="dev")
        trial.in_place("orders", cells((start, start + 1)))
        trial.open()
        trial.fill("orders", start, start + 1, {days(start, start + 1): content(12)})
        looked = store.environments.pointers("dev")["orders"]
        tables = {layer.version: layer.delta_version for layer in looked.layers}
        fill(store, Asked(start=start, end=start + 1, run=f"refresh-{number}"))
        with pytest.raises(PinMovedError, match=f"backfill promote p{number}"):
            trial.publish(trial.move("orders"), tables=tables)
        trial.promote()  # as if it had looked again


def test_cells_that_a_new_table_leaves_out_are_among_those_that_its_publication_changes(
    store: Store,
):
    fill(store, Asked(start=0, end=5))
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3)
    trial.promote()

    (move,) = store.history.moves_of("p1")
    assert (move.cells, move.changed) == (cells((0, 5)), cells((3, 5)))


def test_when_prod_leaves_a_version_those_who_read_it_underneath_keep_it(store: Store):
    _restated_in_dev(store)
    plan = Trial(store, "p2")
    plan.new_version("orders")
    plan.open()
    plan.fill("orders", 0, 7)
    plan.promote()

    assert store.views.of("dev").ready("orders") == cells((0, 7))
    assert store.environments.own_pointers("dev")["orders"].under == (Layer("orders__v1", 1),)


def test_when_prod_removes_a_model_those_who_read_its_table_underneath_keep_it(store: Store):
    _restated_in_dev(store)

    Trial(store, "p2").publish(removed=("orders",))

    assert store.views.of("dev").ready("orders") == cells((0, 7))


def test_rollback_to_the_old_table_brings_its_pin_back_and_marks_what_is_wrong_there(
    store: Store,
):
    fill(store, Asked(start=0, end=5))
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    held = dict.fromkeys(each_day(0, 5), content(10)) | {days(1, 2): content(10, amount=5)}
    trial.fill("orders", 0, 5, held)
    trial.save()
    promoted = trial.promote()
    old = store.history.moves_of("p1")[0].old
    now = store.environments.pointers("prod")["orders"]
    assert old is not None
    back = Move(
        pointer=old, old_version=now.version, old_fingerprint=now.fingerprint, owed=cells((3, 4))
    )
    number = trial.publish(back, kind=PublicationKind.ROLLBACK)

    assert store.environments.pointers("prod")["orders"] == old
    after = _records(store)
    assert after[days(1, 2)].changed_at.columns == {"amount": number}
    assert number not in _stamps(after[days(0, 1)])
    assert promoted not in _stamps(after[days(0, 1)])
    assert store.views.of("prod").owed == {"orders": cells((3, 4))}
    assert store.plans.get("p1").status is PlanStatus.ROLLED_BACK
    assert [each.kind.value for each in store.history.moves_of("p1")] == ["promote", "rollback"]
    assert store.history.moves_of("p1")[1].changed == cells((1, 2))


def test_what_a_way_back_makes_wrong_is_owed_where_it_is_published_and_nowhere_else(store: Store):
    fill(store, Asked(start=0, end=5))
    store.environments.save_environment(Environment("other", protected=False))
    store.environments.ensure_pointer(Pointer("other", "orders", "p", "orders__v1", 0), "/data/o")
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 5)
    trial.promote()
    (promoted,) = store.history.moves_of("p1")
    assert promoted.old is not None
    back = Move.of(promoted.old, promoted.new, owed=cells((3, 4)))
    trial.publish(back, kind=PublicationKind.ROLLBACK)

    assert store.views.of("prod").owed == {"orders": cells((3, 4))}
    assert store.views.of("other").owed == {}


def test_a_way_back_to_an_older_pin_leaves_what_is_known_of_the_log_as_it_is(store: Store):
    """Else the next batch would take the later commits for those of a stranger, and take them back."""
    fill(store, Asked(start=0, end=5))
    old = store.environments.pointers("prod")["orders"]
    fill(store, Asked(start=5, end=7))
    head = store.versions.known_head("orders__v1")
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 7)
    trial.promote()

    trial.publish(
        Move.of(old, store.environments.pointers("prod")["orders"]), kind=PublicationKind.ROLLBACK
    )

    assert store.environments.pointers("prod")["orders"] == old
    assert store.versions.known_head("orders__v1") == head > old.delta_version


def test_a_way_back_of_dev_leaves_a_table_to_prod_that_has_taken_it_over(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    plans = [Trial(store, "p1", "dev"), Trial(store, "p2", "dev"), Trial(store, "p3")]
    for plan, version in zip(plans, ("orders__v2", "orders__v3", "orders__v2"), strict=True):
        plan.new_version("orders", version)
        plan.open()
        plan.fill("orders", 0, 5)
        plan.promote()
    (move,) = store.history.moves_of("p2")
    assert move.old is not None
    plans[1].publish(Move.of(move.old, move.new), kind=PublicationKind.ROLLBACK)

    assert store.environments.pointers("dev")["orders"].version == "orders__v2"
    assert store.versions.owner("orders__v2") == "prod"


def test_what_a_publication_owes_is_owed_in_its_environment_or_in_the_one_that_it_names(
    store: Store,
):
    for name in ("dev", "other"):
        store.environments.save_environment(Environment(name, protected=False, follows="prod"))
    fill(store, Asked(start=0, end=5))
    reason = "what it read is gone"
    owed = (
        OwedCells("orders__v1", cells((1, 2)), reason, "dev"),
        OwedCells("orders__v1", cells((3, 4)), reason),
    )
    Trial(store).publish(owed=owed)

    found = {name: store.views.of(name).owed["orders"] for name in ("prod", "dev", "other")}
    everywhere = cells((3, 4))
    assert found == {"prod": everywhere, "dev": everywhere | cells((1, 2)), "other": everywhere}


def test_of_what_has_read_cells_that_go_a_publication_owes_later_commits_alone(store: Store):
    """Which of the earlier ones are owed was decided before."""
    for model in ("revenue", "clicks"):
        add_model(store, model)
    for model in ("orders", "clicks"):
        fill(store, Asked(model, 0, 5))
    reads = {"orders": cells((0, 5))}
    fill(store, Asked("revenue", 0, 2, reads=reads))
    head = store.versions.known_head("revenue__v1")
    fill(store, Asked("revenue", 2, 3, reads=reads))
    fill(store, Asked("revenue", 3, 4, reads={"clicks": cells((3, 4))}))
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 4)
    trial.publish(trial.move("orders"), taken=TakenAway(("orders",), {"revenue__v1": head}))

    assert store.views.of("prod").owed == {"revenue": cells((2, 3))}


def test_an_environment_is_looked_at_as_if_it_read_elsewhere_before_it_does(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 5))
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3, dict.fromkeys(each_day(0, 3), content(20)))
    trial.promote()
    (move,) = store.history.moves_of("p1")
    seen = store.views.of("prod", instead={"orders": move.old, "revenue": None})

    assert seen.ready("orders") == cells((0, 5))
    assert set(seen.models) == {"orders"}
    assert move.old is not None
    assert seen.models["orders"].pointer == move.old
    assert store.views.of("prod").ready("orders") == cells((0, 3))


def test_undo_within_a_table_reopens_the_old_records_and_takes_away_what_was_not_there(
    store: Store,
):
    fill(store, Asked(start=0, end=4))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 6)))
    trial.open()
    trial.fill("orders", 2, 6, dict.fromkeys(each_day(2, 6), content(20)))
    trial.promote()
    fill(store, Asked(start=6, end=8))
    now = store.environments.pointers("prod")["orders"]
    back = Move(
        pointer=replace(now, delta_version=3),
        old_version=now.version,
        old_fingerprint=now.fingerprint,
        copies=(Copy(Layer("orders__v1", 0), cells((2, 6))),),
        emptied=cells((4, 6)),
    )
    number = trial.publish(back, kind=PublicationKind.UNDO)

    after = _records(store)
    assert set(after) == {*each_day(0, 4), *each_day(6, 8)}
    assert after[days(2, 3)].content == content(10)
    assert _stamps(after[days(2, 3)]) == {number}
    assert after[days(2, 3)].batch_id == "run-1/orders__v1/0-4"
    assert store.history.moves_of("p1")[1].changed == cells((2, 6))
    assert set(_records(store, at=2)) == set(each_day(0, 8))


def test_undo_within_a_table_leaves_the_records_of_other_cells_as_they_are(store: Store):
    fill(store, Asked(start=0, end=4))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.open()
    trial.fill("orders", 2, 4, dict.fromkeys(each_day(2, 4), content(20)))
    trial.promote()
    fill(store, Asked(start=0, end=1, run="run-9"), {days(0, 1): content(33)})
    before, now = _records(store), store.environments.pointers("prod")["orders"]
    back = Move(
        pointer=replace(now, delta_version=3),
        old_version=now.version,
        old_fingerprint=now.fingerprint,
        copies=(Copy(Layer("orders__v1", 0), cells((2, 4))),),
    )
    trial.publish(back, kind=PublicationKind.UNDO)

    after = _records(store)
    assert {day: after[day] for day in each_day(0, 2)} == {
        day: before[day] for day in each_day(0, 2)
    }
    assert [after[day].content for day in each_day(2, 4)] == [content(10)] * 2


def test_a_removed_model_is_read_no_more_and_the_history_says_where_it_was(store: Store):
    add_model(store, "revenue")
    fill(store, Asked("revenue", 0, 2))
    trial = Trial(store)
    trial.open()
    trial.publish(removed=("revenue", "never_there"))

    assert "revenue" not in store.environments.pointers("prod")
    (move,) = store.history.moves_of("p1")
    assert move.new is None
    assert move.old == Pointer("prod", "revenue", "print-revenue", "revenue__v1", 0)
    finalized = store.environments.finalized("prod")
    assert finalized is not None
    assert finalized.removed == ("revenue", "never_there")


def test_a_table_that_dev_gives_up_for_prods_leaves_told_which_cells_differ_there(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=1, end=5))
    dev = Trial(store, environment="dev")
    dev.new_version("orders")
    dev.open()
    dev.fill("orders", 0, 4, dict.fromkeys(each_day(0, 4), content(10)) | {days(1, 2): content(20)})
    dev.promote()

    Trial(store, "p2", "dev").publish(removed=("orders",))

    (move,) = store.history.moves_of("p2")
    assert (move.cells, move.changed) == (cells((0, 5)), cells((0, 2), (4, 5)))


def test_what_may_not_have_read_a_change_beside_its_publication_is_older_than_that(store: Store):
    """No definition is kept that would say which of the cells read it."""
    add_model(store, "revenue")
    for model in ("orders", "revenue"):
        fill(store, Asked(model, 0, 4))
    trial = Trial(store)
    trial.in_place("revenue", cells((0, 3)))
    trial.open()
    trial.fill("revenue", 0, 3)
    looked, before = store.views.of("prod"), _records(store, "revenue__v1")
    pins = {each.pointer.version: each.pointer.delta_version for each in looked.models.values()}
    fill(store, Asked("orders", 1, 2, run="run-9"), {days(1, 2): content(11)})
    orders = _records(store)
    trial.publish(trial.move("revenue"), seen=looked.counter, pins=pins)

    assert _records(store) == orders
    revenue = _records(store, "revenue__v1")
    assert {revenue[day].built_at for day in each_day(0, 3)} == {looked.counter}
    assert revenue[days(3, 4)] == before[days(3, 4)]


def test_moves_are_kept_with_the_instant_at_which_they_were_made(store: Store, clock: Clock):
    trial = _restated(store)
    clock.pass_by(90)
    trial.promote()
    assert store.history.moves_of("p1")[0].at == NOON + timedelta(seconds=90)


def _restated_in_dev(store: Store) -> None:
    """Restate a day in dev, over a table of prod that gets more days since."""
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    dev = Trial(store, environment="dev")
    dev.in_place("orders", cells((2, 3)))
    dev.open()
    dev.fill("orders", 2, 3)
    dev.promote()
    fill(store, Asked(start=5, end=7))


def _said(trial: Trial, intent: int, move: Move) -> Publication:
    return Publication(
        intent=intent, holder="boss", plan_id=trial.plan_id, environment="prod",
        kind=PublicationKind.PROMOTE, moves=(move,),
    )  # fmt: skip
