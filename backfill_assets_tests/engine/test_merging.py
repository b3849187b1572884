"""Keyed models, end to end: their cells become equal to what was computed, and keys stay single."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from backfill_assets.engine.batch.commit_turn import commit_turn
from backfill_assets.engine.batch.effects import Effects
from backfill_assets.engine.project.events import Committed, Failed
from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import Severity, not_null
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey, SoftDelete, Tombstone
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.snapshots.environment import Environment
from backfill_assets.warehouse.rows.computed import computed_batch
from backfill_assets_tests.builders import a_graph, a_model, a_source, day, days
from backfill_assets_tests.engine.world import ended, on, told

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source
    from backfill_assets_tests.engine.world import World

pytestmark = pytest.mark.spark
ORDERS = "web.orders"
COLUMNS = (
    Column("id", "bigint"),
    Column("ds", "date"),
    Column("cost", "bigint"),
    Column("seen_at", "timestamp"),
    Column("gone", "boolean"),
)
SQL = "SELECT id, ds, cost, seen_at, gone FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"


def source() -> Source:
    return a_source(columns=COLUMNS)


def orders(kind: IncrementalByUniqueKey | None = None, **declared: Any) -> Graph:  # noqa: ANN401
    """Orders of the 9th and 10th, where nothing else is said, merged by id."""
    usual: dict[str, Any] = {"query": SqlQuery(SQL), "cadence": Daily(start="2024-01-09")}
    model = a_model(
        ORDERS,
        kind=kind or IncrementalByUniqueKey("ds"),
        columns=COLUMNS,
        unique_key=["id"],
        grain="one row per order",
        **{**usual, **declared},
    )
    return a_graph(model, sources=[source()])


def order(id_: int, number: int, cost: int = 1, *, seen: int = 0, gone: bool = False) -> Any:  # noqa: ANN401
    return (id_, on(number), cost, datetime(2024, 1, 9, 0, 0, seen, tzinfo=UTC), gone)


@pytest.fixture
def dev(world: World) -> World:
    """A world without protection, so that published cells may be built again by hand."""
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    return world


def held(world: World) -> list[tuple[Any, ...]]:
    return world.rows(ORDERS, "id", "ds", "cost", "gone")


@pytest.mark.parametrize(
    ("deletes", "left"),
    [
        ("none", [(2, on(9), 1, False)]),
        ("absent", []),
        (SoftDelete("gone"), [(2, on(9), 1, True)]),
        (Tombstone("gone"), []),
    ],
    ids=["none", "absent", "soft", "tombstone"],
)
def test_a_key_that_the_source_no_longer_has_ends_as_the_model_declares(
    dev: World,
    deletes: Any,  # noqa: ANN401
    left: list[tuple[Any, ...]],
):
    graph = orders(deletes=deletes)
    dev.land(source(), order(1, 9), order(2, 9), order(3, 10))
    dev.fill(graph)
    tombs = [order(2, 9, gone=True)] if isinstance(deletes, Tombstone) else []
    dev.land(source(), order(1, 9, 5), order(4, 9), order(3, 10), *tombs)
    (done,) = ended(
        dev.fill(graph, cells=days(9), published=PublishedCells.REBUILT)[ORDERS], Committed
    )
    expected = [(1, on(9), 5, False), *left, (3, on(10), 1, False), (4, on(9), 1, False)]
    assert held(dev) == expected
    (content,) = done.contents.values()
    assert content.rows == 2 + len(left)


def test_a_tombstone_and_a_row_of_one_key_block_unless_one_of_them_is_the_latest(dev: World):
    declared: dict[str, Any] = {"deletes": Tombstone("gone")}
    dev.land(source(), order(1, 9, seen=1), order(1, 9, seen=2, gone=True), order(2, 9, gone=True))

    (failed,) = ended(dev.fill(orders(**declared), cells=days(9))[ORDERS], Failed)

    assert "1 of 2 rows fail unique(id)" in failed.error
    dev.store.environments.save_environment(Environment("other", protected=False))
    dev.environment = "other"
    latest = orders(IncrementalByUniqueKey("ds", latest_by="seen_at"), **declared)
    assert told(dev.fill(latest, cells=days(9))[ORDERS]) == ["committed"]
    assert held(dev) == []


def test_a_key_in_another_cell_blocks_unless_rows_move(dev: World):
    graph = orders()
    dev.land(source(), order(1, 9), order(2, 9))
    dev.fill(graph, cells=days(9))
    before = held(dev)
    dev.land(source(), order(1, 10), order(2, 9))
    (failed,) = ended(dev.fill(graph, cells=days(10))[ORDERS], Failed)
    assert "already holds keys of this batch in the cells 2024-01-09" in failed.error
    assert held(dev) == before


@pytest.mark.connect
def test_rows_that_move_take_their_old_cell_into_the_batch(dev: World):
    graph = orders(IncrementalByUniqueKey("ds", rows_move=True))
    dev.land(source(), order(1, 9), order(2, 9))
    dev.fill(graph, cells=days(9))
    dev.land(source(), order(1, 10), order(2, 9))
    (done,) = ended(dev.fill(graph, cells=days(10))[ORDERS], Committed)
    assert held(dev) == [(1, on(10), 1, False), (2, on(9), 1, False)]
    assert done.filled == 1
    assert {cell: content.rows for cell, content in done.contents.items()} == {
        day(9): 1,
        day(10): 1,
    }
    records = {
        record.cell: record
        for record in dev.store.versions.ready_records(dev.pointer(ORDERS).version)
    }
    assert {cell: record.content.rows for cell, record in records.items()} == {
        day(9): 1,
        day(10): 1,
    }
    assert records[day(9)].changed_at.row_set > records[day(9)].built_at
    # Day 9 was not computed from its changed source again, only a row left it: the rule says so.
    assert told(dev.fill(graph)[ORDERS]) == ["left stale", "skipped"]


def test_rows_that_came_into_a_cell_while_others_move_out_of_it_stay(dev: World):
    graph = orders(IncrementalByUniqueKey("ds", rows_move=True), batch_concurrency=2)
    dev.land(source(), order(1, 9), order(2, 9))
    dev.fill(graph, cells=days(9))
    dev.land(source(), order(1, 10), order(2, 9), order(3, 9))

    @contextmanager
    def and_another_commits(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        with computed_batch(*given, **named) as batch:
            dev.effects = Effects()
            rebuilt = dev.fill(graph, cells=days(9), published=PublishedCells.REBUILT)[ORDERS]
            assert told(rebuilt) == ["committed"]
            yield batch

    dev.effects = Effects(computed=and_another_commits)
    assert told(dev.fill(graph, cells=days(10))[ORDERS]) == ["committed"]  # the second attempt
    assert [(id_, at) for id_, at, *_ in held(dev)] == [(1, on(10)), (2, on(9)), (3, on(9))]


def test_of_duplicates_the_latest_wins_where_declared_and_blocks_elsewhere(dev: World):
    twice = [order(1, 9, 1, seen=1), order(1, 9, 2, seen=2)]
    dev.land(source(), *twice)
    (failed,) = ended(dev.fill(orders(), cells=days(9))[ORDERS], Failed)
    assert "1 of 2 rows fail unique(id)" in failed.error
    assert held(dev) == []
    latest = orders(IncrementalByUniqueKey("ds", latest_by="seen_at"))
    dev.store.environments.save_environment(Environment("other", protected=False))
    dev.environment = "other"
    dev.fill(latest, cells=days(9))
    assert held(dev) == [(1, on(9), 2, False)]


def test_the_latest_row_of_a_key_stays_whichever_cell_is_built_last(dev: World):
    graph = orders(IncrementalByUniqueKey("ds", latest_by="seen_at", rows_move=True))
    dev.land(source(), order(1, 9, 10, seen=1), order(1, 10, 30, seen=3), order(2, 9))
    dev.fill(graph, cells=days(9, 10))
    dev.land(source(), order(1, 9, 10, seen=1), order(1, 10, 30, seen=3), order(3, 9))

    dev.fill(graph, cells=days(9), published=PublishedCells.REBUILT)

    assert held(dev) == [(1, on(10), 30, False), (3, on(9), 1, False)]
    dev.land(source(), order(1, 9, 50, seen=5), order(1, 10, 30, seen=3), order(3, 9))
    dev.fill(graph, cells=days(9), published=PublishedCells.REBUILT)
    assert held(dev) == [(1, on(9), 50, False), (3, on(9), 1, False)]


@pytest.mark.parametrize("clash", [False, True], ids=["apart", "clashing"])
def test_two_batches_at_once_name_themselves_and_keep_each_key_single(dev: World, *, clash: bool):
    graph = orders(batch_size=1, batch_concurrency=2)
    dev.land(source(), order(1, 9), order(1 if clash else 2, 10))
    both_audited = threading.Barrier(2)

    def together(*given: Any) -> Any:  # noqa: ANN401
        both_audited.wait(120)
        return commit_turn(*given)

    with dev.doing(turn=together):
        events = dev.fill(graph)[ORDERS]
    assert told(events) == (["committed", "failed"] if clash else ["committed"] * 2)
    assert [id_ for id_, *_ in held(dev)] == ([1] if clash else [1, 2])
    named = [
        (commit.batch_id, str(commit.interval))
        for entry in DeltaTable(dev.path(ORDERS)).history()
        if (commit := BatchCommit.from_json(entry.get("userMetadata"))) is not None
    ]
    done = ended(events, Committed)
    assert sorted(named) == sorted((event.batch_id, str(event.cells.span())) for event in done)


@pytest.mark.parametrize("order_of_cells", [(9, 10), (10, 9)], ids=["rising", "falling"])
def test_of_two_cells_that_tie_over_a_key_the_later_one_has_it_however_they_are_built(
    dev: World, order_of_cells: tuple[int, int]
):
    graph = orders(IncrementalByUniqueKey("ds", latest_by="seen_at", rows_move=True))
    ties = [
        order(key, number, cost, seen=1)
        for key in range(1, 9)
        for number, cost in ((9, key), (10, 10 * key))
    ]
    dev.land(source(), *ties)
    for number in order_of_cells:
        dev.fill(graph, cells=days(number))
    one_by_one = held(dev)

    dev.fill(graph, cells=days(9, 10), published=PublishedCells.REBUILT)

    assert one_by_one == held(dev) == [(key, on(10), 10 * key, False) for key in range(1, 9)]


def test_rows_without_a_key_stay_in_a_cell_that_others_move_out_of(dev: World):
    kind = IncrementalByUniqueKey("ds", rows_move=True)
    graph = orders(kind, audits=[replace(not_null("id"), severity=Severity.WARNING)])
    nameless = (None, *order(0, 9)[1:])
    dev.land(source(), order(1, 9), nameless)
    dev.fill(graph, cells=days(9))
    dev.land(source(), order(1, 10), nameless)

    dev.fill(graph, cells=days(10))

    assert sorted(ds for _, ds, *_ in held(dev)) == [on(9), on(10)]
