"""Which columns of a source's cells changed, against an oracle that holds the rows themselves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings, strategies as st

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.source import TimeColumns
from backfill_assets.warehouse.sources.source_columns import changed_columns
from backfill_assets_tests.builders import a_source, day

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.intervals.interval import Interval

NAMES = ("at", "id", "flag", "cost")
SOURCE = a_source(columns=[Column(name, "bigint") for name in NAMES], times=TimeColumns(event="at"))
DAYS = (day(1), day(2), day(3))
Row = tuple[int, ...]
ROW = st.tuples(*(st.integers(0, 1) for _ in NAMES))
CELL = st.integers(1, 3).flatmap(
    lambda rows: st.tuples(*(st.lists(ROW, min_size=rows, max_size=rows) for _ in range(2)))
)


def projected(rows: Sequence[Row], group: frozenset[str]) -> Counter[Row]:
    return Counter(
        tuple(value for name, value in zip(NAMES, row, strict=True) if name in group)
        for row in rows
    )


def told(both: Mapping[Interval, tuple[list[Row], list[Row]]]) -> dict[Interval, frozenset[str]]:
    def same(
        cells: IntervalSet, groups: Sequence[frozenset[str]]
    ) -> dict[Interval, tuple[bool, ...]]:
        return {
            cell: tuple(projected(old, group) == projected(new, group) for group in groups)
            for cell, (old, new) in both.items()
            if cell in cells
        }

    return changed_columns(SOURCE, IntervalSet.of(both), same)


@settings(max_examples=300)
@given(cells=st.tuples(CELL, CELL, CELL))
def test_columns_that_are_not_named_hold_the_same_rows_together(
    cells: tuple[tuple[list[Row], list[Row]], ...],
):
    both = {
        interval: found
        for interval, found in zip(DAYS, cells, strict=True)
        if Counter(found[0]) != Counter(found[1])
    }
    for cell, changed in (told(both) if both else {}).items():
        assert changed
        assert "at" not in changed
        old, new = (projected(rows, frozenset(NAMES) - changed) for rows in both[cell])
        assert old == new


def test_each_cell_is_told_by_its_own_columns():
    old = [(0, 1, 0, 5), (0, 2, 1, 6)]
    changes = {
        DAYS[0]: [(0, 1, 0, 7), (0, 2, 1, 6)],
        DAYS[1]: [(0, 1, 1, 5), (0, 2, 0, 6)],
        DAYS[2]: [(0, 1, 1, 9), (0, 2, 0, 6)],
    }
    found = told({cell: (old, new) for cell, new in changes.items()})
    assert found == {DAYS[0]: {"cost"}, DAYS[1]: {"flag"}, DAYS[2]: {"flag", "cost"}}


def test_a_changed_event_time_counts_for_every_column():
    assert told({DAYS[0]: ([(0, 1, 0, 5)], [(1, 1, 0, 5)])}) == {}
