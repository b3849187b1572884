"""Interval sets against the plainest oracle there is: a set of hours."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Interval, IntervalSet
from backfill_assets_tests.intervals.strategies import HOUR, HOURS, hour, pairs, span


def of(ranges: list[tuple[int, int]]) -> IntervalSet:
    return IntervalSet.of(span(start, end) for start, end in ranges)


def hours(ranges: list[tuple[int, int]]) -> set[int]:
    return {number for start, end in ranges for number in range(start, end)}


def hours_of(found: IntervalSet) -> set[int]:
    return {number for number in range(-1, HOURS + 2) if hour(number) in found}


@given(pairs, pairs)
def test_the_operators_are_those_of_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]):
    a, b = of(left), of(right)

    assert hours_of(a | b) == hours(left) | hours(right)
    assert hours_of(a & b) == hours(left) & hours(right)
    assert hours_of(a - b) == hours(left) - hours(right)


@given(pairs, pairs)
def test_every_result_is_canonical(left: list[tuple[int, int]], right: list[tuple[int, int]]):
    for found in (of(left) | of(right), of(left) & of(right), of(left) - of(right)):
        assert found == IntervalSet.of(found)
        assert list(found.boundaries) == sorted(set(found.boundaries))
        assert found.seconds() == len(hours_of(found)) * 3600


@given(pairs)
def test_equal_content_is_the_same_value(ranges: list[tuple[int, int]]):
    cut = [(number, number + 1) for number in hours(ranges)]

    assert of(ranges) == of(cut)
    assert hash(of(ranges)) == hash(of(list(reversed(cut))))


@given(pairs, st.integers(0, HOURS - 1), st.integers(1, HOURS))
def test_an_interval_is_in_a_set_when_all_its_hours_are(
    ranges: list[tuple[int, int]], start: int, length: int
):
    wanted = set(range(start, start + length))

    assert (span(start, start + length) in of(ranges)) == (wanted <= hours(ranges))


@given(pairs)
def test_a_set_and_what_lies_between_its_intervals_make_up_its_span(ranges: list[tuple[int, int]]):
    found = of(ranges)

    if not found:
        assert not found.between()
        with pytest.raises(RequestError, match="an empty set spans no interval"):
            found.span()
        return
    assert not found & found.between()
    assert [*(found | found.between())] == [found.span()] == [found.hull()]


@given(st.lists(pairs, max_size=5))
def test_the_union_of_many_is_the_union_of_each(many: list[list[tuple[int, int]]]):
    found = IntervalSet.union_all(of(ranges) for ranges in many)

    assert hours_of(found) == set().union(*map(hours, many))


@given(pairs, st.integers(0, HOURS), st.integers(0, HOURS))
def test_within_is_the_part_in_a_range(ranges: list[tuple[int, int]], start: int, end: int):
    first, last = (int(hour(number).timestamp()) for number in (start, end))

    assert hours_of(of(ranges).within(first, last)) == hours(ranges) & set(range(start, end))


def test_iteration_and_length_are_of_its_disjoint_ranges():
    found = of([(5, 7), (0, 2), (2, 3)])

    assert list(found) == [span(0, 3), span(5, 7)]
    assert len(found) == 2
    assert found.hull() == span(0, 7)


def test_the_empty_set_is_false_and_has_no_hull():
    assert not IntervalSet.empty()
    assert IntervalSet.empty().hull() is None
    assert of([(0, 1)]) - of([(0, 1)]) == IntervalSet.empty()


def test_half_a_second_past_the_end_is_not_in_a_set():
    found, half = of([(0, 1)]), timedelta(seconds=0.5)

    assert hour(1) - half in found
    assert hour(1) + half not in found
    assert Interval(hour(0) + half, hour(1) - half) in found
    assert Interval(hour(0), hour(1) + half) not in found


def test_a_boundary_finer_than_a_second_is_refused():
    with pytest.raises(RequestError, match="not a whole second"):
        IntervalSet.of([Interval(hour(0), hour(1) + HOUR / 7200)])


@pytest.mark.parametrize("boundaries", [(1,), (2, 1), (1, 2, 2, 3), (5, 6, 1, 2)])
def test_boundaries_that_are_not_canonical_are_refused(boundaries: tuple[int, ...]):
    with pytest.raises(RequestError, match="strictly increasing"):
        IntervalSet(boundaries)
