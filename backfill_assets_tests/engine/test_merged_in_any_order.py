"""Merged rows that move, against an oracle: whatever is landed, and in whatever order cells are built."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.snapshots.environment import Environment
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.world import on, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

pytestmark = pytest.mark.spark
ORDERS = "web.orders"
COLUMNS = (
    Column("id", "bigint"),
    Column("ds", "date"),
    Column("cost", "bigint"),
    Column("seen_at", "timestamp"),
)
SQL = "SELECT id, ds, cost, seen_at FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
DAYS = (7, 8, 9, 10)
"""Of January 2024, the model's whole life."""


class Order(NamedTuple):
    """A row of the source; no two are of one key, day and second."""

    id: int
    day: int
    seen: int
    cost: int


ORDER = st.builds(
    Order, st.integers(1, 2), st.sampled_from(DAYS), st.integers(0, 1), st.integers(1, 9)
)
LANDED = st.lists(
    ORDER, min_size=3, max_size=8, unique_by=lambda order: (order.id, order.day, order.seen)
)
CELLS = st.lists(st.sampled_from(DAYS), min_size=1, unique=True)
STEPS = st.lists(st.tuples(LANDED, st.lists(CELLS, max_size=2)), min_size=1, max_size=3)
ALL = st.permutations(DAYS).flatmap(
    lambda order: st.lists(st.booleans(), min_size=len(order), max_size=len(order)).map(
        lambda cuts: _cut(order, cuts)
    )
)
EXAMPLES = max(settings().max_examples // 50, 1)
"""Each computes some ten batches on Spark: two in CI, a hundred in the nightly profile."""
_numbers = count(1)


def _cut(order: Sequence[int], cuts: Sequence[bool]) -> list[list[int]]:
    """Cut an order of all days into builds."""
    numbers = [sum(cuts[: at + 1]) for at in range(len(order))]
    return [
        [day for day, _ in each]
        for _, each in groupby(zip(order, numbers, strict=True), key=lambda pair: pair[1])
    ]


def orders() -> Graph:
    """Orders merged by id, of a table of their own each time."""
    model = a_model(
        ORDERS,
        query=SqlQuery(f"{SQL} AND cost > -{next(_numbers)}"),
        kind=IncrementalByUniqueKey("ds", latest_by="seen_at", rows_move=True),
        columns=COLUMNS,
        unique_key=["id"],
        grain="one row per order",
        cadence=Daily(start="2024-01-07"),
        deletes="absent",
    )
    return a_graph(model, sources=[a_source(columns=COLUMNS)])


def land(world: World, rows: list[Order]) -> None:
    as_rows: list[Any] = [
        (row.id, on(row.day), row.cost, datetime(2024, 1, 7, 0, 0, row.seen, tzinfo=UTC))
        for row in rows
    ]
    world.land(a_source(columns=COLUMNS), *as_rows)


def build(world: World, graph: Graph, numbers: list[int]) -> None:
    """Build some days, whether they are published or not."""
    events = world.fill(graph, cells=days(*numbers), published=PublishedCells.REBUILT)[ORDERS]
    assert not {"failed", "waiting"} & {*told(events)}


def latest(rows: list[Order]) -> list[tuple[Any, ...]]:
    """Of each key the row that was seen last, of equal ones the one of the later day."""
    by_key = {row.id: row for row in sorted(rows, key=lambda row: (row.seen, row.day))}
    return sorted((row.id, on(row.day), row.cost) for row in by_key.values())


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=STEPS, landed=LANDED, first=ALL, again=ALL)
def test_once_every_cell_is_built_twice_each_key_has_its_latest_row(
    world: World,
    before: list[tuple[list[Order], list[list[int]]]],
    landed: list[Order],
    first: list[list[int]],
    again: list[list[int]],
):
    graph, world.environment = orders(), f"dev{next(_numbers)}"
    world.store.environments.save_environment(Environment(world.environment, protected=False))
    for rows, builds in before:
        land(world, rows)
        for numbers in builds:
            build(world, graph, numbers)
            ids = [row[0] for row in world.rows(ORDERS, "id")]
            assert len(ids) == len({*ids})
    land(world, landed)
    for numbers in first:
        build(world, graph, numbers)
    # A latest row that went leaves its key to an older cell when that is built again: docs/soundness.md.
    for numbers in again:
        build(world, graph, numbers)

    assert world.rows(ORDERS, "id", "ds", "cost") == latest(landed)
