from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.codec import dumps
from backfill_assets.models.content import ChangedAt
from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.snapshots.ready import ReadyRecord
from backfill_assets.state.cells import bounds
from backfill_assets.state.layered_view import Cell, told_at
from backfill_assets_tests.state.building import Asked, add_model, content, days, each_day, fill
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.models.content import Content
    from backfill_assets.state.store import Store

READS = {"orders": cells((0, 3))}


@pytest.fixture(autouse=True)
def prod(store: Store) -> None:
    """Prod has ten days of orders, and revenue that reads them."""
    add_model(store, "revenue")
    fill(store, Asked("orders", 0, 10))
    fill(store, Asked("revenue", 0, 3, reads=READS))
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))


def _restate_orders(store: Store, plan_id: str, environment: str) -> Trial:
    trial = Trial(store, plan_id, environment=environment)
    trial.in_place("orders", cells((0, 3)))
    trial.open()
    trial.fill("orders", 0, 3, dict.fromkeys(each_day(0, 3), content(11)))
    return trial


def _built_at(store: Store, environment: str, model: str = "revenue") -> set[int]:
    return {run.built_at for run in store.views.of(environment).models[model].runs}


def test_a_plan_finds_nothing_fresh_that_development_built_from_rows_of_its_own(store: Store):
    _restate_orders(store, "p1", "dev").promote()
    dev = Trial(store, "p2", environment="dev")
    version = dev.new_version("revenue")
    dev.open()
    dev.fill("revenue", 0, 3, reads=READS)
    assert 0 not in _built_at(store, dev.workspace)
    dev.promote()

    trial = Trial(store, "p3")
    trial.new_version("revenue", version)
    trial.open()
    assert _built_at(store, trial.workspace) == {0}
    at = Pointer("prod", "revenue", "print", version, store.versions.known_head(version))
    looked = store.views.of("prod", instead={"revenue": at}).models["revenue"]
    assert {run.built_at for run in looked.runs} == {0}

    trial.fill("revenue", 0, 3, reads=READS)
    assert 0 not in _built_at(store, trial.workspace)


@pytest.mark.parametrize("restating", [False, True])
def test_a_plan_takes_over_what_development_built_from_what_prod_reads(
    store: Store, *, restating: bool
):
    dev = Trial(store, "p2", environment="dev")
    version = dev.new_version("revenue")
    dev.open()
    dev.fill("revenue", 0, 3, reads=READS)
    dev.promote()
    trial = Trial(store, "p3")
    trial.new_version("revenue", version)
    if restating:
        trial.in_place("orders", cells((0, 1)))
    trial.open()
    assert 0 not in _built_at(store, trial.workspace)


def test_what_an_abandoned_plan_built_from_its_own_rows_is_not_fresh_in_the_next(store: Store):
    first = Trial(store, "p1")
    first.in_place("orders", cells((0, 3)))
    version = first.new_version("revenue")
    first.open()
    first.fill("orders", 0, 3, dict.fromkeys(each_day(0, 3), content(11)))
    first.fill("revenue", 0, 3, reads=READS)
    store.environments.drop_workspace("p1")
    again = Trial(store, "p2")
    again.new_version("revenue", version)
    again.open()
    assert _built_at(store, again.workspace) == {0}


def test_what_was_published_before_is_as_fresh_as_it_was_then(store: Store):
    first = Trial(store, "p1")
    first.in_place("orders", cells((0, 3)))
    version = first.new_version("revenue")
    first.open()
    first.fill("orders", 0, 3, dict.fromkeys(each_day(0, 3), content(11)))
    first.fill("revenue", 0, 3, reads=READS)
    first.promote()
    at = Pointer("prod", "revenue", "print", version, store.versions.known_head(version))
    looked = store.views.of("prod", instead={"revenue": at}).models["revenue"]
    assert 0 not in {run.built_at for run in looked.runs}


@pytest.mark.parametrize(("environment", "left"), [("prod", "revenue__v1"), ("dev", "revenue__v2")])
def test_a_table_that_was_left_is_as_fresh_as_then_where_all_that_it_has_read_is_published(
    store: Store, environment: str, left: str
):
    for plan_id, number in (("p1", 2), ("p2", 3)):
        both = Trial(store, plan_id, environment=environment)
        for model in ("orders", "revenue"):
            both.new_version(model, f"{model}__v{number}")
        both.open()
        both.fill("orders", 0, 10)
        both.fill("revenue", 0, 3, reads=READS)
        both.promote()

    again = Trial(store, "p3", environment=environment)
    again.in_place("orders", cells((0, 1)))
    again.new_version("revenue", left)
    again.open()
    assert 0 not in _built_at(store, again.workspace)
    at = Pointer(environment, "revenue", "print", left, store.versions.known_head(left))
    looked = store.views.of(environment, instead={"revenue": at}).models["revenue"]
    assert 0 not in {run.built_at for run in looked.runs}


def _left_in_dev(store: Store, held: Content) -> str:
    """Dev published revenue over orders of its own, then a later table of revenue, and reads prod's orders again."""
    own = Trial(store, "p1", environment="dev")
    own.in_place("orders", cells((0, 3)))
    left = own.new_version("revenue")
    own.open()
    own.fill("orders", 0, 3, dict.fromkeys(each_day(0, 3), held))
    own.fill("revenue", 0, 3, reads=READS)
    own.promote()
    later = Trial(store, "p2", environment="dev")
    later.new_version("revenue", "revenue__v3")
    later.open()
    later.fill("revenue", 0, 3, reads=READS)
    later.promote()
    Trial(store, "p3", environment="dev").publish(removed=("orders",))
    return left


def _is_fresh(store: Store, version: str) -> bool:
    """Whether a plan of dev that uses a table again finds its cells fresh, and so does a way back to it."""
    again = Trial(store, "p9", environment="dev")
    again.new_version("revenue", version)
    again.open()
    at = Pointer("dev", "revenue", "print", version, store.versions.known_head(version))
    looked = store.views.of("dev", instead={"revenue": at}).models["revenue"]
    outdated = [
        _built_at(store, again.workspace) == {0},
        {run.built_at for run in looked.runs} == {0},
    ]
    assert len({*outdated}) == 1
    return not any(outdated)


@pytest.mark.parametrize("held", [content(10), content(11)])
def test_what_was_published_before_is_not_fresh_where_prods_older_rows_are_read_again(
    store: Store, held: Content
):
    """Prod has published them long ago, so that no stamp tells of them."""
    left = _left_in_dev(store, held)
    assert _is_fresh(store, left) == (held == content(10))


@pytest.mark.parametrize("told", ["amount", "other"])
def test_what_was_published_before_is_fresh_only_where_stamps_tell_of_the_very_columns_that_differ(
    store: Store, told: str
):
    left = _left_in_dev(store, content(10, amount=12, other=1))
    now = {"amount": 13, "other": 1} if told == "amount" else {"amount": 11, "other": 2}
    held = dict.fromkeys(each_day(0, 3), content(10, **now))
    fill(store, Asked("orders", 0, 3, run="run-9"), held)
    assert _is_fresh(store, left) == (told == "amount")


def test_what_was_published_before_is_as_fresh_as_then_where_stamps_tell_what_has_changed(
    store: Store,
):
    both = Trial(store, "p1")
    both.new_version("orders")
    left = both.new_version("revenue")
    both.open()
    both.fill("orders", 0, 10, dict.fromkeys(each_day(0, 10), content(11)))
    both.fill("revenue", 0, 3, reads=READS)
    both.promote()
    for model, number in (("revenue", 3), ("orders", 4)):
        later = Trial(store, f"p{number}")
        later.new_version(model, f"{model}__v{number}")
        later.open()
        later.fill(model, 0, 10)
        later.promote()

    again = Trial(store, "p5")
    again.new_version("revenue", left)
    again.open()
    assert 0 not in _built_at(store, again.workspace)


def test_what_a_plan_has_built_itself_is_fresh_though_prod_has_moved_to_an_equal_table(
    store: Store,
):
    trial = Trial(store, "p1")
    trial.new_version("revenue")
    trial.open()
    trial.fill("revenue", 0, 3, reads=READS)
    moving = Trial(store, "p2")
    moving.new_version("orders")
    moving.open()
    moving.fill("orders", 0, 10)
    moving.promote()

    assert 0 not in _built_at(store, trial.workspace)


def _cell(start: int, end: int, held: Content, changed_at: int) -> Cell:
    edges, stamps = bounds(days(start, end)), ChangedAt(changed_at, {"amount": changed_at})
    return Cell(edges["starts"], edges["ends"], "b", 1, dumps(stamps), dumps(held), 0)


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ([_cell(0, 2, content(10), 5)], None),
        ([_cell(0, 2, content(10, amount=12), 5)], 5),
        ([], 0),
        ([_cell(0, 1, content(10), 5)], 0),
        ([_cell(0, 1, content(10), 7), _cell(1, 2, content(10), 5)], 5),
        ([_cell(0, 3, content(10), 9)], 9),
    ],
    ids=["the same", "other rows", "gone", "half gone", "shorter cells", "a longer cell"],
)
def test_what_is_read_instead_of_a_cell_is_told_of_by_its_earliest_stamp(
    there: list[Cell], told: int | None
):
    held = ReadyRecord(
        "v", days(0, 2), 0, None, 1, "f", "b", content(10), ChangedAt(1, {"amount": 1})
    )
    assert told_at(there, held) == told
