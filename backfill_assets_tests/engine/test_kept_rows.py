"""Rows that only history has: a new table takes them over, or a person says that it drops them."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch.kept_rows import kept_rows_in
from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.plans.strategy_checks import StrategyCheckError
from backfill_assets.engine.project.events import Failed
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey, SoftDelete, Tombstone
from backfill_assets.planning.change import deriving
from backfill_assets.planning.change.categorize import DeclarationDifference
from backfill_assets.planning.plan.request import Category, KeptRows, Restatement
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import ended, on, told

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

pytestmark = pytest.mark.spark
ORDERS = "web.orders"
COLUMNS = (
    Column("id", "bigint"),
    Column("ds", "date"),
    Column("cost", "bigint"),
    Column("gone", "boolean"),
)
FIRST = ((1, on(9), 1, False), (2, on(9), 2, False), (3, on(10), 3, False))
LEFT = FIRST[1:]
"""Order 1 is gone from the source."""


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def orders(cost: str = "cost", extra: str = "", **declared: Any) -> Graph:  # noqa: ANN401
    """Orders merged by id; those whose source is gone stay."""
    columns = (*COLUMNS, Column("double", "bigint")) if extra else COLUMNS
    model = a_model(
        ORDERS,
        sql=f"SELECT id, ds, {cost} AS cost, gone{extra} FROM web.events"
        " WHERE ds >= :start_ds AND ds < :end_ds",
        columns=columns,
        unique_key=["id"],
        grain="one row per order",
        cadence=Daily(start="2024-01-09"),
        **{"kind": IncrementalByUniqueKey("ds"), "deletes": "none", **declared},
    )
    return a_graph(model, sources=[a_source(columns=COLUMNS)])


WIDER, BREAKING = orders(extra=", cost * 2 AS double"), orders("cost + 10")


def noted(note: str, dtype: str) -> Graph:
    """The same orders with a note, of some type."""
    where = "WHERE ds >= :start_ds AND ds < :end_ds"
    model = a_model(
        ORDERS,
        sql=f"SELECT id, ds, {note} AS note FROM web.events {where}",
        columns=(*COLUMNS[:2], Column("note", dtype)),
        unique_key=["id"],
        grain="one row per order",
        cadence=Daily(start="2024-01-09"),
        kind=IncrementalByUniqueKey("ds"),
        deletes="none",
    )
    return a_graph(model, sources=[a_source(columns=COLUMNS)])


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (noted("cost", "bigint"), "CAST_INVALID_INPUT"),
        (noted("struct(cost AS cost)", "struct<cost:bigint>"), "cannot cast"),
    ],
    ids=["value", "type"],
)
def test_kept_rows_that_the_new_types_can_not_hold_are_dropped_or_named(
    world: World, plans: Plans, new: Graph, error: str
):
    only_history_has_order_1(world, plans, noted("concat('no. ', cost)", "string"))
    carrying = plans.make(new, kept_rows=KeptRows.CARRY)

    (failed, *_) = ended(plans.apply(new, carrying).events[ORDERS], Failed)

    assert f"kept rows of '{ORDERS}' can't be taken over into its columns" in failed.error
    assert error in failed.error
    assert "--kept-rows drop" in failed.error
    abandon_plan(plans.project(new), carrying)
    plans.published(new, kept_rows=KeptRows.DROP)
    assert [id_ for (id_,) in world.rows(ORDERS, "id")] == [2, 3]


def only_history_has_order_1(world: World, plans: Plans, graph: Graph) -> None:
    (source,) = graph.sources.values()
    world.land(source, *FIRST)
    world.fill(graph)
    world.land(source, *LEFT)
    plans.published(graph, restate=(Restatement(ORDERS),))


@pytest.mark.parametrize(
    ("deletes", "mark"),
    [("none", False), (SoftDelete("gone"), True), (Tombstone("gone"), False)],
    ids=["none", "soft", "tombstone"],
)
def test_a_wider_table_takes_over_the_rows_that_only_history_has(
    world: World,
    plans: Plans,
    deletes: Any,  # noqa: ANN401
    mark: bool,  # noqa: FBT001
):
    old = orders(deletes=deletes, audit_columns=True)
    new = orders(extra=", cost * 2 AS double", deletes=deletes, audit_columns=True)
    only_history_has_order_1(world, plans, old)
    written = world.rows(ORDERS, "id", "_inserted_at", "_batch_id")[0]
    plan = plans.make(new)
    model = plan.model(ORDERS)
    assert model is not None
    assert model.kept_rows is KeptRows.CARRY
    plans.apply(new, plan)
    plans.promote(new, plan)
    assert world.rows(ORDERS, "id", "cost", "gone", "double") == [
        (1, 1, mark, None),
        (2, 2, False, 4),
        (3, 3, False, 6),
    ]
    assert world.rows(ORDERS, "id", "_inserted_at", "_batch_id")[0] == written
    found = kept_rows_in(world.store.plans.events(plan.plan_id))
    assert found[ORDERS].carried == {"2024-01-09": 1}
    assert told(world.fill(new)[ORDERS]) == ["skipped"]
    assert plans.make(new).is_empty


@pytest.mark.parametrize("asked", KeptRows, ids=str)
def test_a_breaking_change_does_with_kept_rows_what_a_person_says(
    world: World, plans: Plans, asked: KeptRows
):
    only_history_has_order_1(world, plans, orders())
    with pytest.raises(RequestError, match="--kept-rows carry"):
        plans.make(BREAKING)
    plan = plans.published(BREAKING, kept_rows=asked)
    rows = [(2, 12), (3, 13)]
    carried = asked is KeptRows.CARRY
    assert world.rows(ORDERS, "id", "cost") == ([(1, 1), *rows] if carried else rows)
    found = kept_rows_in(world.store.plans.events(plan.plan_id))[ORDERS]
    assert (found.carried if carried else found.dropped) == {"2024-01-09": 1}
    assert not (found.dropped if carried else found.carried)


def test_rows_that_are_dropped_excuse_no_other_value_of_those_that_stay(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    only_history_has_order_1(world, plans, orders())
    plan = plans.make(BREAKING, kept_rows=KeptRows.DROP)
    plans.apply(BREAKING, plan)
    nothing = DeclarationDifference(
        Category.BREAKING, "seems harmless", rows=False, columns=frozenset()
    )
    monkeypatch.setattr(deriving, "difference", lambda *_: nothing)
    with pytest.raises(StrategyCheckError, match="cost differs in 2 cells"):
        plans.promote(BREAKING, plan)


def test_rows_that_lose_their_source_while_a_plan_waits_are_taken_over(world: World, plans: Plans):
    old, new = (orders(extra=column, late_window=2) for column in ("", ", cost * 2 AS double"))
    (source,) = old.sources.values()
    world.land(source, *LEFT)
    world.fill(old)
    plan = plans.make(new)
    plans.apply(new, plan)
    for rows in (FIRST, LEFT):  # order 1 comes and goes, and prod keeps it
        world.land(source, *rows)
        world.fill(old)
    assert [id_ for (id_,) in world.rows(ORDERS, "id")] == [1, 2, 3]
    plans.promote(new, plan)
    assert world.rows(ORDERS, "id", "double") == [(1, None), (2, 4), (3, 6)]
