"""What the files of a source tell of a column is never more than what its rows would say."""

from __future__ import annotations

from hypothesis import given, strategies as st

from backfill_assets.intervals import IntervalSet
from backfill_assets.planning.review.source_columns import FileNulls, filled
from backfill_assets_tests.builders import day, days

DAYS = range(1, 7)
ROWS = st.lists(st.tuples(st.sampled_from(DAYS), st.booleans()), max_size=6)
"""Rows of one file: the day, and whether the column has a value."""


def file_of(rows: list[tuple[int, bool]], *, told: bool, placed: bool) -> FileNulls:
    at = [number for number, _ in rows] or [1]
    span = day(min(at), max(at) - min(at) + 1)
    nulls = sum(not value for _, value in rows)
    return FileNulls(
        IntervalSet.of([span]) if placed else None,
        len(rows),
        {"c": nulls if told else None},
        one_cell=placed and min(at) == max(at),
    )


@given(st.lists(st.tuples(ROWS, st.booleans(), st.booleans()), max_size=4))
def test_holes_are_certain_and_every_other_one_is_untold(
    files: list[tuple[list[tuple[int, bool]], bool, bool]],
):
    every = [row for rows, _, _ in files for row in rows]
    with_rows = days(*(number for number, _ in every))
    holes = with_rows - days(*(number for number, value in every if value))

    found = filled(
        [file_of(rows, told=told, placed=placed) for rows, told, placed in files],
        ["c"],
        with_rows,
        {},
    )

    without = found.without.get("c", IntervalSet.empty())
    untold = found.untold.get("c", IntervalSet.empty())
    assert not without - holes
    assert not holes - without - untold


@given(st.dictionaries(st.sampled_from(DAYS), st.booleans()))
def test_files_of_one_cell_each_tell_all(values: dict[int, bool]):
    files = [file_of([(number, value)], told=True, placed=True) for number, value in values.items()]

    found = filled(files, ["c"], days(*values), {})

    holes = days(*(number for number, value in values.items() if not value))
    assert found.without == ({"c": holes} if holes else {})
    assert not found.untold


def test_a_file_that_is_full_says_nothing_of_a_cell_that_another_one_leaves_empty():
    around = file_of([(1, True), (3, True)], told=True, placed=True)
    between = file_of([(2, False)], told=True, placed=True)

    found = filled([around, between], ["c"], days(1, 2, 3), {})

    assert found.untold == {"c": days(2)}
    assert not found.without


def test_a_column_that_differs_is_not_looked_at():
    found = filled(
        [file_of([(1, False)], told=True, placed=True)], ["c"], days(1), {"c": "missing"}
    )

    assert found.differing == {"c": "missing"}
    assert not found.without
