"""Merged rows that move, against an oracle: whatever is landed, and in whatever order cells are built."""

from __future__ import annotations

from itertools import count, groupby
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Daily
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.snapshots.environment import Environment
from backfill_assets_tests.builders import days
from backfill_assets_tests.engine.test_merging import ORDERS, SQL, held, order, orders, source
from backfill_assets_tests.engine.world import told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

    Row = tuple[Any, ...]
    """A row of the source: id, day, cost, when it was seen, whether it is gone (never)."""

pytestmark = pytest.mark.spark
DAYS = (7, 8, 9, 10)
"""Of January 2024, the model's whole life."""
EXAMPLES = max(settings().max_examples // 50, 1)
"""Each computes some ten batches on Spark: two in CI, a hundred in the nightly profile."""

_ROW = st.builds(
    lambda key, day, cost, seen: order(key, day, cost, seen=seen),
    st.integers(1, 2),
    st.sampled_from(DAYS),
    st.integers(1, 9),
    st.integers(0, 1),
)
LANDED = st.lists(
    _ROW, min_size=3, max_size=8, unique_by=lambda row: (row[0], row[1], row[3])
)  # no two of one key, day and second
SOME = st.lists(st.sampled_from(DAYS), min_size=1, unique=True)
STEPS = st.lists(st.tuples(LANDED, st.lists(SOME, max_size=2)), min_size=1, max_size=3)
ALL = st.tuples(st.permutations(DAYS), st.lists(st.booleans(), min_size=4, max_size=4))
"""All days in some order, and after which of them a build ends."""
_numbers = count(1)


def builds(order_and_cuts: tuple[Sequence[int], Sequence[bool]]) -> list[list[int]]:
    """Cut an order of all days into builds."""
    numbered = [
        (sum(order_and_cuts[1][:at]), day) for at, day in enumerate(order_and_cuts[0])
    ]  # a build's number is how many have ended before
    return [
        [day for _, day in each] for _, each in groupby(numbered, key=lambda numbered: numbered[0])
    ]


def build(world: World, graph: Graph, numbers: list[int]) -> None:
    """Build some days, whether they are published or not; each key stays single."""
    events = world.fill(graph, cells=days(*numbers), published=PublishedCells.REBUILT)[ORDERS]
    assert not {"failed", "waiting"} & {*told(events)}
    keys = [row[0] for row in held(world)]
    assert len(keys) == len({*keys})


def latest(rows: list[Row]) -> list[Row]:
    """Of each key the row that was seen last, of equal ones the one of the later day."""
    by_key = {row[0]: row for row in sorted(rows, key=lambda row: (row[3], row[1]))}
    return sorted((key, at, cost, gone) for key, at, cost, _, gone in by_key.values())


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=STEPS, landed=LANDED, first=ALL.map(builds), again=ALL.map(builds))
def test_once_every_cell_is_built_twice_each_key_has_its_latest_row(
    world: World,
    before: list[tuple[list[Row], list[list[int]]]],
    landed: list[Row],
    first: list[list[int]],
    again: list[list[int]],
):
    graph = orders(  # of a table of its own each time
        IncrementalByUniqueKey("ds", latest_by="seen_at", rows_move=True),
        query=SqlQuery(f"{SQL} AND cost > -{next(_numbers)}"),
        cadence=Daily(start="2024-01-07"),
        deletes="absent",
    )
    world.environment = f"dev{next(_numbers)}"
    world.store.environments.save_environment(Environment(world.environment, protected=False))
    for rows, some in before:
        world.land(source(), *rows)
        for numbers in some:
            build(world, graph, numbers)
    world.land(source(), *landed)
    # A latest row that went leaves its key to an older cell when that is built again: docs/soundness.md.
    for numbers in (*first, *again):
        build(world, graph, numbers)

    assert held(world) == latest(landed)
