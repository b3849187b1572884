"""Reading layer by layer, held against one naive look per cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import dumps
from backfill_assets.models.content import ChangedAt
from backfill_assets.snapshots.environment import Layer, Pointer
from backfill_assets.snapshots.ready import ReadyRecord
from backfill_assets.state import layered_view, layers, ready
from backfill_assets.state.tables import READY_RECORDS
from backfill_assets_tests.state.building import NOON, content, days

if TYPE_CHECKING:
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.state.store import Store


DAYS = 8


@dataclass(frozen=True)
class Table:
    """A table of the trial: per day, the commits that wrote it, and the pin that it is read at."""

    writes: tuple[tuple[int, ...], ...]
    pin: int


tables = st.builds(
    Table,
    st.lists(
        st.sets(st.integers(0, 4), max_size=3).map(sorted).map(tuple), min_size=DAYS, max_size=DAYS
    ).map(tuple),
    st.integers(-1, 4),
)
day_sets = st.sets(st.integers(0, DAYS - 1)).map(
    lambda picked: IntervalSet.of(days(at, at + 1) for at in picked)
)


def _records(version: str, table: Table) -> list[ReadyRecord]:
    made: list[ReadyRecord] = []
    for day, commits in enumerate(table.writes):
        for since, until in zip_longest(commits, commits[1:]):
            who = (since, "print", f"{version}@{since}")
            held = (content(100 * since + day), ChangedAt(since, {"amount": since}))
            made.append(ReadyRecord(version, days(day, day + 1), since, until, *who, *held))
    return made


def _naive(stack: list[Table], certain: IntervalSet, cell: Interval, day: int) -> str | None:
    """Ask every table in turn: does it hold this day at its pin?"""
    for number, table in enumerate(stack):
        if number > 0 and cell in certain:
            return None
        written = [at for at in table.writes[day] if at <= table.pin]
        if written:
            return f"t{number}@{written[-1]}"
    return None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stack=st.lists(tables, min_size=1, max_size=3), certain=day_sets, within=day_sets)
def test_each_cell_is_read_from_the_first_table_that_holds_it(
    store: Store, stack: list[Table], certain: IntervalSet, within: IntervalSet
):
    under = tuple(Layer(f"t{number}", table.pin) for number, table in enumerate(stack))[1:]
    pointer = Pointer("dev", "m", "p", "t0", stack[0].pin, under, certain)

    def look(
        connection: sa.Connection,
    ) -> tuple[dict[Interval, ReadyRecord], dict[Interval, Content], list[layered_view.Cell]]:
        connection.execute(sa.delete(READY_RECORDS))
        for number, table in enumerate(stack):
            for each in _records(f"t{number}", table):
                ready.open_records(connection, [each], each.valid_from)
                closed = sa.update(READY_RECORDS).where(
                    READY_RECORDS.c.version == each.version,
                    READY_RECORDS.c.batch_id == each.batch_id,
                    READY_RECORDS.c.starts == int(each.cell.start.timestamp()),
                )
                connection.execute(closed.values(valid_to=each.valid_to))
        return (
            layers.records(connection, pointer, within),
            layers.contents(connection, pointer, within),
            layered_view.cells_at(connection, pointer),
        )

    records, contents, cells = store._database.write(look)
    expected = {
        days(day, day + 1): found
        for day in range(DAYS)
        if (found := _naive(stack, certain, days(day, day + 1), day)) is not None
    }
    asked = {cell: found for cell, found in expected.items() if cell in within}
    assert {cell: record.batch_id for cell, record in records.items()} == asked
    assert {cell: record.content for cell, record in records.items()} == contents
    assert [record.batch_id for record in cells] == list(expected.values())
    runs = layered_view.runs_of(cells, own=True)
    assert IntervalSet.of(run.interval for run in runs) == IntervalSet.of(expected)


@pytest.mark.parametrize("own", [True, False])
def test_only_the_upper_table_may_be_the_environments_own(own: bool):  # noqa: FBT001
    stamps = dumps(ChangedAt(1, {}))
    top = layered_view.Cell(0, 10, "b", 1, stamps, "", 0)
    below = layered_view.Cell(10, 20, top.batch_id, 1, top.changed_at, "", 1)
    runs = layered_view.runs_of([top, below], own=own)
    assert [run.own for run in runs] == [own, False]


_STAMPS, _LATER = dumps(ChangedAt(1, {})), dumps(ChangedAt(2, {}))
_CELL = layered_view.Cell(0, 10, "b", 1, _STAMPS, "", 0)


@pytest.mark.parametrize(
    "otherwise",
    [
        {"batch_id": "c"},
        {"built_at": 2},
        {"changed_at": _LATER},
        {"layer": 1},
        {"unread": _LATER},
        {"replaces": 2},
    ],
)
def test_touching_cells_are_one_run_where_batch_stamps_and_table_are_the_same(
    otherwise: dict[str, Any],
):
    following = replace(_CELL, starts=10, ends=20)
    assert len(layered_view.runs_of([_CELL, following], own=True)) == 1
    assert len(layered_view.runs_of([_CELL, replace(following, **otherwise)], own=True)) == 2


def test_a_run_tells_when_its_batch_pinned_its_sources_and_began():
    (run,) = layered_view.runs_of([replace(_CELL, pinned_at=0, began_at=NOON)], own=True)
    assert (run.sources_at, run.began_at) == (0, NOON)
