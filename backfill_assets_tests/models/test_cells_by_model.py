"""Cells by model against the plainest oracle there is: a set of hours for each name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.codec import dumps, loads
from backfill_assets_tests.intervals.strategies import span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMES = ["web.a", "web.b", "web.c", "web.d"]
HOURS = 6
Hours = dict[str, set[int]]
hours = st.sets(st.integers(0, HOURS - 1))
plain = st.dictionaries(st.sampled_from(NAMES), hours)
pairs = st.lists(st.tuples(st.sampled_from(NAMES), hours))


def cells(numbers: Iterable[int]) -> IntervalSet:
    return IntervalSet.of(span(number, number + 1) for number in numbers)


def mapped(given_: Mapping[str, set[int]]) -> dict[str, IntervalSet]:
    return {name: cells(numbers) for name, numbers in given_.items()}


def of(given_: Mapping[str, set[int]]) -> CellsByModel:
    return CellsByModel(mapped(given_))


def shown(found: CellsByModel) -> Hours:
    """Give what it holds, model by model, as it says itself."""
    numbers = {
        name: {hour for hour in range(HOURS) if cells([hour]) & found[name]} for name in NAMES
    }
    assert {name: cells(each) for name, each in numbers.items() if each} == dict(found.items())
    return some(numbers)


def some(given_: Mapping[str, set[int]]) -> Hours:
    return {name: numbers for name, numbers in given_.items() if numbers}


def each_with(left: Hours, right: Hours) -> list[tuple[str, set[int], set[int]]]:
    return [(name, left.get(name, set()), right.get(name, set())) for name in NAMES]


@given(plain, plain)
def test_the_operators_are_those_of_sets_model_by_model(left: Hours, right: Hours):
    both = each_with(left, right)

    for other in (of(right), mapped(right)):
        assert shown(of(left) | other) == some({name: a | b for name, a, b in both})
        assert shown(of(left) & other) == some({name: a & b for name, a, b in both})
        assert shown(of(left) - other) == some({name: a - b for name, a, b in both})


@given(plain, plain)
def test_the_same_cells_are_equal_values_and_no_cells_are_false(left: Hours, right: Hours):
    for found in (of(left), of(left) | of(right), of(left) & of(right), of(left) - of(right)):
        assert found == CellsByModel(dict(found)) == dict(found)
        assert bool(found) is any(found.values())
        assert all(found.values())
    assert (of(left) == of(right)) is (some(left) == some(right))


@given(pairs)
def test_cells_that_are_given_for_the_same_model_are_united(listed: list[tuple[str, set[int]]]):
    expected: defaultdict[str, set[int]] = defaultdict(set)
    for name, numbers in listed:
        expected[name] |= numbers

    assert shown(CellsByModel.of((name, cells(each)) for name, each in listed)) == some(expected)


@given(plain)
def test_a_model_without_cells_is_not_named_and_has_the_empty_set(given_: Hours):
    found = of(given_)

    for name in NAMES:
        assert (name in found) is bool(given_.get(name))
        assert found[name] == found.get(name) == cells(given_.get(name, set()))
    assert len(found) == len(list(found)) == len(some(given_))


@given(plain, plain)
def test_models_keep_the_order_in_which_they_were_first_named(left: Hours, right: Hours):
    first, more = list(some(left)), list(some(right))

    assert list(of(left)) == first
    assert list(of(left) | of(right)) == [*first, *(name for name in more if name not in first)]
    for fewer in (of(left) - of(right), of(left) & of(right)):
        assert list(fewer) == [name for name in first if name in fewer]


@given(plain, plain)
def test_a_value_never_changes(left: Hours, right: Hours):
    held, other = mapped(left), mapped(right)
    kept = found = CellsByModel(held)
    found |= other
    found &= other
    found -= other
    held["web.new"] = cells([1])

    assert (kept, other) == (of(left), mapped(right))
    assert not found
    with pytest.raises(FrozenInstanceError):
        kept.cells = {}  # type: ignore[misc]


@given(plain)
def test_it_is_stored_as_the_plain_mapping_is(given_: Hours):
    text = dumps(of(given_))

    assert text == dumps(mapped(some(given_)))
    assert CellsByModel(loads(text, (IntervalSet,))) == of(given_)
