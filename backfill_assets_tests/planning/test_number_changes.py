"""The parts of a difference sum exactly to it, whatever was published, and whatever can't be read any more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Interval
from backfill_assets.models.content import Content
from backfill_assets.planning.review.number_changes import (
    Cause,
    CauseKind,
    Explained,
    HeldContent,
    HistoryStep,
    explain,
    merged,
)
from backfill_assets_tests.builders import FIRST, day, days

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBERS = st.integers(-(10**37), 10**37).map(
    lambda units: Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -9))
)
CELLS = tuple(map(day, (1, 2, 3)))


@dataclass(frozen=True)
class Link:
    """What a cell held after a step, and whether that can still be read."""

    held: HeldContent
    number: Decimal
    readable: bool


Links = dict[Interval, Link]


@st.composite
def histories(draw: st.DrawFn) -> list[Links]:
    """What three cells held at first, then after each of some steps; some cells are not held at times."""
    history: list[Links] = [{}]
    for step in range(draw(st.integers(0, 6))):
        links = dict(history[-1])
        for cell in draw(st.sets(st.sampled_from(CELLS))):
            links.pop(cell, None)
            if draw(st.booleans()):
                held = HeldContent("t", step, f"batch-{step}", "f", None)
                links[cell] = Link(held, draw(NUMBERS), draw(st.booleans()))
        history.append(links)
    first = draw(st.integers(0, len(history) - 1))
    return history[first:]


def told(history: list[Links]) -> Explained:
    numbers = {
        (cell, link.held): link.number if link.readable else None
        for links in history
        for cell, link in links.items()
    }
    return explain(
        held(history[0]),
        [
            HistoryStep(FIRST + timedelta(days=at), "batch", held(links))
            for at, links in enumerate(history[1:])
        ],
        lambda cell, there: numbers[cell, there],
        causes,
    )


def causes(
    _step: HistoryStep, _cell: Interval, old: HeldContent | None, _new: HeldContent | None
) -> tuple[Cause, ...]:
    return (Cause(CauseKind.FIRST if old is None else CauseKind.LOGIC),)


def held(links: Links) -> Mapping[Interval, HeldContent]:
    return {cell: link.held for cell, link in links.items()}


def total(links: Links) -> Fraction | None:
    """Add up as fractions, as no code of the product does."""
    if not all(link.readable for link in links.values()):
        return None
    return sum((Fraction(link.number) for link in links.values()), Fraction(0))


def fraction(number: Decimal | None) -> Fraction | None:
    return None if number is None else Fraction(number)


@given(histories())
def test_the_parts_sum_exactly_to_the_difference(history: list[Links]):
    found = told(history)
    before, after = total(history[0]), total(history[-1])
    assert (fraction(found.before), fraction(found.after)) == (before, after)
    if before is None or after is None:
        assert found.difference is None
        return
    parts = [fraction(part.difference) for part in found.parts]
    known = [difference for difference in parts if difference is not None]
    assert len(known) == len(parts)
    assert sum(known) == after - before == fraction(found.difference)


@given(histories())
def test_every_step_that_changed_a_readable_number_is_in_a_part(history: list[Links]):
    found = told(history)
    named = {each.step for part in found.parts for each in part.happened}
    for at, (before, after) in enumerate(pairwise(history)):
        readable = all(link.readable for links in (before, after) for link in links.values())
        changed = any(number(before, cell) != number(after, cell) for cell in CELLS)
        if readable and changed:
            assert at in named


@given(histories())
def test_a_part_of_several_steps_goes_around_what_can_not_be_read(history: list[Links]):
    for part in told(history).parts:
        if len(part.happened) > 1:
            between = [each.step for each in part.happened[:-1]]
            assert not any(
                link.readable
                for step in between
                for cell, link in history[step + 1].items()
                if cell in part.cells
            )


def number(links: Links, cell: Interval) -> Decimal:
    return links[cell].number if cell in links else Decimal(0)


def of_day_one(batch: str, *, readable: bool) -> Links:
    held = HeldContent("t", 0, batch, "f", None)
    return {day(1): Link(held, Decimal(len(batch)), readable=readable)}


@pytest.mark.parametrize("ends", [(True, False), (False, True), (False, False)])
def test_what_can_not_be_read_at_an_end_is_in_a_part(ends: tuple[bool, bool]):
    found = told([of_day_one("a", readable=ends[0]), of_day_one("bb", readable=ends[1])])
    assert [(part.before is not None, part.after is not None) for part in found.parts] == [ends]
    assert found.equal == 0


def test_all_steps_around_what_can_not_be_read_are_in_one_part():
    found = told([of_day_one(batch, readable=batch != "bb") for batch in ("a", "bb", "ccc")])
    assert [[each.step for each in part.happened] for part in found.parts] == [[0, 1]]


def test_a_cell_that_holds_the_same_has_no_step_even_where_its_record_is_gone():
    old = of_day_one("a", readable=True)
    content = Content(1, 1, {})
    recorded = {day(1): replace(old[day(1)], held=replace(old[day(1)].held, content=content))}
    found = explain(
        held(old),
        [HistoryStep(FIRST, "batch", held(recorded))],
        lambda _cell, there: Decimal(1 if there.content is None else 2),
        causes,
    )
    assert (found.parts, found.equal) == ((), 0)


@pytest.mark.parametrize(
    "other",
    [
        Cause(CauseKind.LATE, "shop.orders", note="n"),
        Cause(CauseKind.LOGIC, "shop.items", note="n"),
        Cause(CauseKind.LOGIC, "shop.orders", note="m"),
    ],
)
def test_cells_that_changed_for_other_causes_are_other_parts(other: Cause):
    cause = Cause(CauseKind.LOGIC, "shop.orders", note="n")
    now = {day(n): HeldContent("t", 1, "b", "f", None) for n in (1, 2)}
    found = explain(
        {},
        [HistoryStep(FIRST, "batch", now)],
        lambda _cell, _there: Decimal(1),
        lambda _step, cell, _old, _new: (cause if cell == day(1) else other,),
    )
    assert [part.cells for part in found.parts] == [days(1), days(2)]


def test_causes_of_one_sort_are_one_over_all_their_cells():
    late = [Cause(CauseKind.LATE, "shop.orders", days(n)) for n in (1, 2)]
    other = Cause(CauseKind.LATE, "shop.items", days(1))
    assert merged([late[0], other, late[1]]) == (replace(late[0], cells=days(1, 2)), other)


def test_cells_that_changed_for_one_cause_are_one_part():
    old = {
        day(n): Link(HeldContent("t", 0, "a", "f", None), Decimal(n), readable=True) for n in (1, 2)
    }
    new = {
        day(n): Link(HeldContent("t", 1, "b", "f", None), Decimal(9), readable=True) for n in (1, 2)
    }
    found = told([old, new])
    assert [(part.cells, part.difference) for part in found.parts] == [(days(1, 2), Decimal(15))]
    assert found.equal == 0


def test_a_step_that_left_the_number_as_it_was_is_counted_and_no_part():
    old = {day(1): Link(HeldContent("t", 0, "a", "f", None), Decimal(5), readable=True)}
    new = {day(1): Link(HeldContent("t", 1, "b", "f", None), Decimal("5.00"), readable=True)}
    found = told([old, new])
    assert (found.parts, found.equal) == ((), 1)
