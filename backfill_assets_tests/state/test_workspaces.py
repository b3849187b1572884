from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import GAP
from backfill_assets.snapshots.environment import Environment, Layer, Pointer
from backfill_assets.snapshots.hold import Hold, held_name
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.snapshots.state_view import NEVER_READ
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.snapshots.workspace import OwedCells
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.opening import CellsReadyError, UpstreamNotReadyError
from backfill_assets.state.promotions import PromotionPendingError
from backfill_assets_tests.state.building import (
    LEASE,
    NOON,
    Asked,
    add_model,
    content,
    days,
    each_day,
    fill,
    owe,
)
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

DEV = Environment("dev", protected=False, follows="prod")


def _restating(store: Store, start: int, end: int) -> Trial:
    """Prod has ten days of orders; a plan rebuilds some."""
    fill(store, Asked(start=0, end=10))
    trial = Trial(store)
    trial.in_place("orders", cells((start, end)))
    trial.open()
    return trial


def test_a_workspace_follows_its_environment_and_nobody_sees_it_there(store: Store):
    before = store.views.of("prod")
    trial = _restating(store, 2, 4)

    opened = store.environments.get("plan:p1")
    assert opened.follows == "prod"
    assert opened.is_workspace
    assert store.environments.own_pointers("plan:p1") == {
        "orders": Pointer(
            "plan:p1",
            "orders",
            "print-orders",
            "orders__v1__p1",
            -1,
            (Layer("orders__v1", 0),),
            cells((2, 4)),
        )
    }
    assert store.versions.owner("orders__v1__p1") == "plan:p1"
    trial.fill("orders", 2, 4)
    assert (
        before.models["orders"].pointer.version
        == store.environments.pointers("prod")["orders"].version
    )
    assert store.views.of("prod").ready("orders") == cells((0, 10))
    assert store.views.of("prod").owed == {}


def test_what_is_certain_is_a_gap_until_the_workspace_has_built_it(store: Store):
    trial = _restating(store, 2, 6)
    assert store.views.of(trial.workspace).ready("orders") == cells((0, 2), (6, 10))

    trial.fill("orders", 2, 4)
    view = store.views.of(trial.workspace)
    assert view.ready("orders") == cells((0, 4), (6, 10))
    assert view.models["orders"].own == cells((2, 4))


def test_what_is_built_in_the_environment_meanwhile_is_seen(store: Store):
    trial = _restating(store, 2, 4)
    fill(store, Asked(start=10, end=12))
    assert store.views.of(trial.workspace).ready("orders") == cells((0, 2), (4, 12))
    assert store.environments.pointers(trial.workspace)["orders"].under == (Layer("orders__v1", 1),)
    assert store.environments.own_pointers(trial.workspace)["orders"].under == (
        Layer("orders__v1", 0),
    )


def test_cells_that_came_out_as_they_are_published_have_not_changed(store: Store):
    trial = _restating(store, 2, 5)
    published = store.views.of("prod").models["orders"].runs[0].changed_at
    opened = store.environments.get(trial.workspace).opened or 0
    held = {day: content(10) for day in each_day(2, 5)} | {days(3, 4): content(10, amount=12)}
    trial.fill("orders", 2, 5, held)

    runs = {each.interval: each for each in store.views.of(trial.workspace).models["orders"].runs}
    assert runs[days(2, 3)].changed_at == published
    assert runs[days(4, 5)].changed_at == published
    assert runs[days(3, 4)].changed_at.row_set == published.row_set
    assert runs[days(3, 4)].changed_at.columns["amount"] > opened


def test_a_new_version_has_changed_for_those_who_read_the_old_one_only_where_its_columns_differ(
    store: Store,
):
    fill(store, Asked(start=0, end=3))
    published = store.views.of("prod").models["orders"].runs[0].changed_at
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    assert store.views.of(trial.workspace).ready("orders") == cells()
    trial.fill("orders", 0, 3, dict.fromkeys(each_day(0, 3), content(10, amount=11, tax=3)))

    (run,) = store.views.of(trial.workspace).models["orders"].runs
    assert run.unread is not None
    assert run.unread.row_set == published.row_set
    assert run.unread.columns["amount"] == published.columns["amount"]
    assert run.unread.columns["tax"] == NEVER_READ


def test_a_cell_of_three_published_days_is_a_changed_one_also_where_it_holds_what_its_first_day_does(
    store: Store,
):
    fill(store, Asked(start=0, end=2))
    fill(store, Asked(start=2, end=3, run="later"))
    last_read = store.views.of("prod").models["orders"].runs[-1].sources_at
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 3, {days(0, 3): content(10)})

    (run,) = store.views.of(trial.workspace).models["orders"].runs
    assert run.interval == days(0, 3)
    assert run.unread is not None
    assert run.unread.row_set == NEVER_READ
    assert run.replaces == last_read


def test_content_is_read_layer_by_layer_and_what_is_published_stays_known(store: Store):
    trial = _restating(store, 2, 4)
    trial.fill("orders", 2, 3, {days(2, 3): content(77)})
    some = cells((1, 4))

    assert store.views.content_at_pin(trial.workspace, "orders", some) == {
        days(1, 2): content(10), days(2, 3): content(77),
    }  # fmt: skip
    published = dict.fromkeys(each_day(1, 4), content(10))
    assert store.views.published_contents(trial.workspace, "orders", some) == published
    assert store.views.published_contents("prod", "orders", some) == published


def test_a_batch_in_a_workspace_pins_every_table_that_answers(store: Store):
    add_model(store, "revenue")
    trial = _restating(store, 2, 4)
    trial.fill("orders", 2, 4)
    with_new = Trial(store, "p2")
    request = replace(
        Asked("revenue", 0, 1, reads={"orders": cells((1, 5))}).request, environment="plan:p1",
        version="revenue__v1__p1",
    )  # fmt: skip
    add = Pointer("plan:p1", "revenue", "print", "revenue__v1__p1", -1, (Layer("revenue__v1", -1),))
    trial.opened.append(replace(trial.opened[0], pointer=add, path="/data/revenue__v1__p1"))
    trial.open()

    upper = InputPin("orders", "orders__v1__p1", "/data/orders__v1__p1", 0, cells((2, 4)))
    lower = InputPin("orders", "orders__v1", "/data/orders__v1", 0, cells((1, 2), (4, 5)))
    assert store.batches.open_batch(request).inputs == (upper, lower)
    assert store.batches.get(request.batch_id).inputs == (upper, lower)

    alone = replace(
        request,
        batch_id="b2",
        reads={"orders": cells((5, 6))},
        stretches=IntervalSet.of([days(1, 2)]),
    )
    assert store.batches.open_batch(alone).inputs == (replace(lower, cells=None),)
    assert with_new.opened == []


def test_what_is_published_under_a_workspace_is_not_its_plans_own_work_done(store: Store):
    _restating(store, 2, 4)
    decided = replace(
        Asked("orders", 5, 6, reason="plan").request,
        environment="plan:p1",
        version="orders__v1__p1",
        seen=-1,
    )

    assert store.batches.open_batch(decided).request == decided


def test_a_batch_waits_for_the_certain_cells_that_it_reads(store: Store):
    add_model(store, "revenue")
    fill(store, Asked(start=0, end=10))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.in_place("revenue")
    trial.open()
    with pytest.raises(UpstreamNotReadyError) as refused:
        trial.fill("revenue", 0, 1, reads={"orders": cells((0, 3))})
    assert refused.value.missing == cells((2, 3))


def test_a_gap_fill_leaves_cells_alone_that_a_table_underneath_holds(store: Store):
    trial = _restating(store, 2, 4)
    asked = Asked("orders", 4, 5, environment=trial.workspace, table="orders__v1__p1", reason=GAP)
    with pytest.raises(CellsReadyError):
        store.batches.open_batch(asked.request)
    store.batches.open_batch(replace(asked, start=2, end=3).request)


def test_opening_again_changes_nothing_and_adds_what_is_missing(store: Store):
    trial = _restating(store, 2, 4)
    trial.fill("orders", 2, 3)
    before, opened = (
        store.environments.pointers(trial.workspace),
        store.environments.get(trial.workspace),
    )

    assert trial.open() == opened
    assert store.environments.pointers(trial.workspace) == before
    add_model(store, "revenue")
    trial.in_place("revenue")
    trial.open()
    assert set(store.environments.own_pointers(trial.workspace)) == {"orders", "revenue"}


def test_what_a_plan_restates_is_owed_in_its_environment_until_it_is_built(store: Store):
    fill(store, Asked(start=0, end=10))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.owed.append(OwedCells("orders__v1", cells((2, 4)), "restated"))
    trial.open()
    trial.open()

    assert store.views.of("prod").owed == {"orders": cells((2, 4))}
    trial.fill("orders", 2, 3)
    assert store.views.of("prod").owed == {"orders": cells((2, 4))}
    assert store.views.of(trial.workspace).owed == {}


def test_what_dev_restates_is_nothing_that_prod_owes(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=10))
    trial = Trial(store, environment="dev")
    trial.in_place("orders", cells((2, 4)))
    trial.owed.append(OwedCells("orders__v1", cells((2, 4)), "restated"))
    trial.open()

    assert store.views.of("prod").owed == {}
    assert store.views.of("dev").owed == {"orders": cells((2, 4))}


def test_cells_may_be_owed_in_every_version_of_a_model(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=5))
    trial = Trial(store, environment="dev")
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 5)
    trial.promote()

    assert store.environments.mark_owed_everywhere("orders", cells((1, 3)), "wrong", plan_id="p7") == (
        "orders__v1", "orders__v2",
    )  # fmt: skip
    assert store.views.of("prod").owed == store.views.of("dev").owed == {"orders": cells((1, 3))}


def test_dropping_a_workspace_forgets_it_and_what_it_owed(store: Store):
    fill(store, Asked(start=0, end=10))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.owed.append(OwedCells("orders__v1", cells((2, 4)), "restated"))
    trial.open()
    trial.fill("orders", 2, 4)
    owe(store, "orders__v1", cells((5, 6)), "restated", plan_id="p2")
    store.environments.drop_workspace(trial.plan_id)
    store.environments.drop_workspace(trial.plan_id)

    with pytest.raises(UnknownEnvironmentError):
        store.environments.get(trial.workspace)
    assert store.environments.own_pointers(trial.workspace) == {}
    assert store.views.of("prod").owed == {"orders": cells((5, 6))}
    assert store.versions.version_path("orders__v1__p1")


def test_a_workspace_where_somebody_builds_is_not_dropped(store: Store, clock: Clock):
    trial = _restating(store, 2, 4)
    asked = Asked("orders", 2, 4, environment=trial.workspace, table="orders__v1__p1")
    store.batches.open_batch(asked.request)
    with pytest.raises(CellsClaimedError):
        store.environments.drop_workspace(trial.plan_id)
    clock.pass_by(LEASE + 1)
    store.environments.drop_workspace(trial.plan_id)


def test_a_workspace_that_is_being_promoted_is_not_dropped(store: Store):
    trial = _restating(store, 2, 4)
    trial.begin("orders__v1")
    with pytest.raises(PromotionPendingError):
        store.environments.drop_workspace(trial.plan_id)


def test_two_plans_can_not_write_one_version(store: Store):
    first, second = Trial(store, "p1"), Trial(store, "p2")
    for trial in (first, second):
        trial.new_version("orders")
    first.open()

    with pytest.raises(RequestError, match="belongs to 'plan:p1', which alone writes it"):
        second.open()
    with pytest.raises(UnknownEnvironmentError):
        store.environments.get("plan:p2")
    store.environments.drop_workspace("p1")
    second.open()
    assert store.versions.owner("orders__v2") == "plan:p2"


def _filled_by_dev(store: Store) -> None:
    """Let dev publish a table of its own."""
    store.environments.save_environment(DEV)
    dev = Trial(store, "p1", environment="dev")
    dev.new_version("orders")
    dev.open()
    dev.fill("orders", 0, 3)
    dev.promote()


def test_a_plan_for_prod_takes_over_what_dev_has_built_and_dev_goes_on_reading_it(store: Store):
    _filled_by_dev(store)
    assert store.versions.owner("orders__v2") == "dev"

    plan = Trial(store, "p2")
    plan.new_version("orders")
    plan.open()
    assert store.versions.owner("orders__v2") == plan.workspace
    (run,) = store.views.of(plan.workspace).models["orders"].runs
    assert (run.interval, run.own) == (days(0, 3), True)
    assert run.unread is not None
    assert run.unread.row_set == NEVER_READ, "nobody in prod has read it before"
    plan.fill("orders", 3, 5)
    assert store.views.of("dev").ready("orders") == cells((0, 3))
    with pytest.raises(RequestError, match="belongs to 'plan:p2', which alone writes it"):
        fill(store, Asked("orders", 5, 6, environment="dev", table="orders__v2"))


def test_a_plan_of_dev_takes_no_table_over_that_another_environment_alone_writes(store: Store):
    for name in ("dev", "bob"):
        store.environments.save_environment(Environment(name, protected=False, follows="prod"))
    for environment in ("prod", "bob"):
        owner = Trial(store, f"p1-{environment}", environment)
        table = owner.new_version("orders", f"orders__{environment}")
        owner.open()
        owner.promote()
        plan = Trial(store, f"p2-{environment}", "dev")
        plan.new_version("orders", table)

        with pytest.raises(RequestError, match=f"belongs to '{environment}'"):
            plan.open()


def test_dev_runs_its_own_definition_over_a_table_that_prod_takes_over(store: Store):
    _filled_by_dev(store)
    described = Trial(store, "p2", environment="dev")
    described.in_place("orders", fingerprint="described")
    described.open()
    described.promote()

    plan = Trial(store, "p3")
    plan.new_version("orders")
    plan.open()
    plan.promote()

    read = {name: store.environments.pointers(name)["orders"] for name in ("prod", "dev")}
    assert {at.version for at in read.values()} == {"orders__v2"}
    assert read["dev"].fingerprint == "described" != read["prod"].fingerprint


def test_a_plan_is_told_which_tables_other_environments_alone_write(store: Store):
    store.environments.save_environment(DEV)
    prod = store.environments.get("prod")
    built = Trial(store, "p1", environment="dev")
    built.new_version("orders")
    built.open()
    both = ("orders__v1", "orders__v2", "orders__v3")
    assert store.environments.taken(DEV, both) == {"orders__v1"}
    assert store.environments.taken(prod, both) == set(), "a plan for dev ends before long"
    built.fill("orders", 0, 3)
    built.promote()
    assert store.environments.taken(DEV, both) == {"orders__v1"}
    assert store.environments.taken(prod, both) == set(), "prod takes over what dev has built"


def test_nobody_fills_a_table_that_another_environment_owns(store: Store):
    store.environments.save_environment(DEV)
    asked = Asked("orders", 0, 1, environment="dev")
    with pytest.raises(RequestError, match="belongs to 'prod'"):
        store.batches.open_batch(asked.request)
    assert store.views.of("prod").claimed == {}


def test_a_table_whose_owner_is_gone_belongs_to_whoever_opens_next(store: Store):
    store.environments.save_environment(DEV)
    store.environments.save_environment(Environment("old", protected=False))
    for name in ("old", "dev"):
        store.environments.ensure_pointer(
            Pointer(name, "clicks", "p", "clicks__v1", -1), "/data/clicks__v1"
        )
    asked = Asked("clicks", 0, 1, environment="dev")
    with pytest.raises(RequestError, match="belongs to 'old', which alone writes it"):
        store.batches.open_batch(asked.request)
    store.environments.drop_environment("old")
    store.batches.open_batch(asked.request)
    assert store.versions.owner("clicks__v1") == "dev"


def test_rows_that_move_take_the_record_of_the_table_underneath_along(store: Store):
    fill(store, Asked(start=0, end=10))
    before = {each.cell: each for each in store.versions.ready_records("orders__v1")}
    trial = Trial(store)
    trial.in_place("orders", cells((2, 3)))
    trial.open()
    held = {days(2, 3): content(9), days(5, 6): content(11), days(20, 21): content(1)}
    trial.fill("orders", 2, 3, held)

    records = {each.cell: each for each in store.versions.ready_records("orders__v1__p1")}
    assert set(records) == {days(2, 3), days(5, 6)}
    assert records[days(5, 6)].built_at == before[days(5, 6)].built_at
    assert records[days(5, 6)].batch_id == before[days(5, 6)].batch_id
    assert records[days(5, 6)].content == content(11)


def test_rows_that_move_to_a_cell_that_a_plan_has_to_build_do_not_make_it_ready(store: Store):
    fill(store, Asked(start=0, end=10))
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.open()
    trial.fill("orders", 2, 3, {days(2, 3): content(9), days(3, 4): content(11)})

    assert not store.views.of(trial.workspace).ready("orders") & cells((3, 4))


def test_whoever_still_applies_an_abandoned_plan_opens_no_workspace(store: Store):
    trial = Trial(store)
    trial.in_place("orders", cells((2, 4)))
    trial.save(PlanStatus.ABANDONED)
    with pytest.raises(RequestError, match="is abandoned; expected"):
        trial.open()
    assert [environment.name for environment in store.environments.by_name()] == ["prod"]


def test_a_table_that_a_plan_had_taken_over_is_given_back_when_it_is_abandoned(store: Store):
    store.environments.save_environment(DEV)
    dev = Trial(store, "p1", environment="dev")
    version = dev.new_version("orders")
    dev.open()
    dev.promote()
    taking = Trial(store, "p2")
    taking.new_version("orders", version)
    taking.open()
    assert store.versions.owner(version) == "plan:p2"
    store.environments.drop_workspace("p2")
    assert store.versions.owner(version) == "dev"


def test_a_table_that_a_held_consumer_reads_is_not_given_to_its_hold_which_writes_nothing(
    store: Store,
):
    fill(store, Asked())
    hold = Hold(
        environment=held_name("year"), consumer="year", of="prod", models=("orders",),
        held_at=NOON, until=None, who="ann", reason="it is audited",
    )  # fmt: skip
    store.holds.hold(hold)
    newer = Trial(store, "p1")
    newer.new_version("orders")
    newer.open()
    newer.promote()

    for plan_id in ("p2", "p3"):
        older = Trial(store, plan_id)
        older.new_version("orders", "orders__v1")
        older.open()
        assert store.versions.owner("orders__v1") == older.workspace
        store.environments.drop_workspace(plan_id)
