"""A model that reads its own earlier cells: what a rebuilt cell changes goes on to the end in one run."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.project.events import Committed
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.upstream import Upstream
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import ended, row, text, told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.events import Event
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

SUMS, TWICE = "web.sums", "web.twice"
FIRST = Daily(start="2024-01-04")
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"
ROWS = [row(n, 1, 1.0) for n in range(4, 11)]
COLUMNS = (Column("ds", "date"), Column("total", "decimal(18,2)"))


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def sums(most: int = 1000, **declared: Any) -> Graph:  # noqa: ANN401
    """What was there up to a day, `most` at most, and twice of it in a model that reads that."""
    before = f"SELECT total FROM {SUMS} WHERE ds = DATE_SUB(:start_ds, 1)"
    total = f"COALESCE(SUM(cost), 0) + COALESCE(({before}), 0)"
    sql = f"SELECT :start_ds AS ds, CAST(LEAST({total}, {most}) AS DECIMAL(18,2)) AS total FROM web.events {WHERE}"
    given: dict[str, Any] = {"unique_key": ["ds"], "columns": COLUMNS, "cadence": FIRST, **declared}
    reads = ["web.events", Upstream(SUMS, lookback=1)]
    twice = f"SELECT ds, CAST(total * 2 AS DECIMAL(18,2)) AS total FROM {SUMS} {WHERE}"
    return a_graph(
        a_model(SUMS, sql=sql, upstreams=reads, batch_size=1, **given),
        a_model(TWICE, sql=twice, upstreams=[SUMS], **given),
    )


def late(world: World, graph: Graph, *rows: Any) -> None:  # noqa: ANN401
    """Rows arrive that only a plan brings in."""
    world.land(a_source(), *ROWS, *rows)
    assert set(told(world.fill(graph)[SUMS])) == {"left stale", "skipped"}


def totals(world: World, name: str) -> list[int]:
    return [int(total) for _, total in world.rows(name, "ds", "total")]


def built(graph: Graph, name: str, events: Iterable[Event]) -> list[str]:
    """The cells of each batch, in order."""
    return [text(graph, name, event.cells) for event in ended(events, Committed)]


def test_one_apply_builds_every_cell_that_changes_with_the_one_before_it(
    world: World, plans: Plans
):
    graph = sums()
    world.begin(graph, *ROWS)
    late(world, graph, row(6, 2, 10.0), row(9, 2, 100.0))
    plan = plans.make(graph)
    applied = plans.apply(graph, plan)
    assert applied.status is PlanStatus.BUILT
    days = [f"2024-01-{n:02}" for n in range(6, 11)]
    assert built(graph, SUMS, applied.events[SUMS]) == days  # each once, and in order
    assert built(graph, TWICE, applied.events[TWICE])[0].startswith("2024-01-06")
    plans.promote(graph, plan)
    assert totals(world, SUMS) == [1, 2, 13, 14, 15, 116, 117]
    assert totals(world, TWICE) == [2, 4, 26, 28, 30, 232, 234]
    assert plans.make(graph).is_empty


def test_where_a_cell_comes_out_as_it_was_the_later_ones_are_spared(world: World, plans: Plans):
    graph = sums(most=5)
    world.begin(graph, *ROWS)
    assert totals(world, SUMS) == [1, 2, 3, 4, 5, 5, 5]
    late(world, graph, row(6, 2, 1.0))
    plan = plans.make(graph)
    applied = plans.apply(graph, plan)
    assert applied.status is PlanStatus.BUILT
    assert built(graph, SUMS, applied.events[SUMS]) == [f"2024-01-{n:02}" for n in (6, 7, 8)]
    assert applied.spared == {SUMS: 2, TWICE: 3}
    plans.promote(graph, plan)
    assert totals(world, SUMS) == [1, 2, 4, 5, 5, 5, 5]


def test_one_run_refreshes_all_that_a_late_row_reaches_inside_the_late_window(world: World):
    graph = sums(late_window=3)
    alone = a_graph(graph.models[SUMS])
    world.begin(alone, *ROWS)
    world.land(a_source(), *ROWS, row(9, 2, 5.0))
    assert built(alone, SUMS, world.fill(alone)[SUMS]) == ["2024-01-09", "2024-01-10"]
    assert totals(world, SUMS) == [1, 2, 3, 4, 5, 11, 12]
    assert told(world.fill(alone)[SUMS]) == ["skipped"]


def test_a_later_start_leaves_out_what_earlier_cells_had_brought(world: World, plans: Plans):
    world.land(a_source(), *ROWS)
    world.fill(sums())
    later = sums(cadence=Daily(start="2024-01-06"))
    plans.published(later)
    assert totals(world, SUMS) == [1, 2, 3, 4, 5]
    assert totals(world, TWICE) == [2, 4, 6, 8, 10]
    assert plans.make(later).is_empty
