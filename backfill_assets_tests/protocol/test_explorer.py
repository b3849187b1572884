"""The explorer itself: it visits every state once, and finds what was planted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.explorer import STUCK, System, explore

if TYPE_CHECKING:
    from collections.abc import Iterator

Counters = tuple[int, int]


def _counting(state: Counters) -> Iterator[tuple[str, Counters]]:
    count, other = state
    if count < 3:
        yield "the first counts", (count + 1, other)
    if other < 3:
        yield "the second counts", (count, other + 1)


def _nothing(*_: Counters) -> None:
    return None


def _is_full(state: Counters) -> bool:
    return state == (3, 3)


WHOLE = System((0, 0), _counting, _nothing, _nothing, _is_full, _nothing)


def test_every_state_is_visited_once():
    found = explore(WHOLE)
    assert (found.states, found.steps, found.ends, found.violation) == (16, 24, 1, None)


def test_a_state_that_was_planted_is_found_on_a_shortest_way():
    def violated(_: Counters, state: Counters) -> str | None:
        return "both count" if state == (2, 1) else None

    found = explore(replace(WHOLE, violated=violated))
    assert found.violation == "both count"
    assert len(found.trace) == 3
    assert str(found).splitlines()[:2] == ["does not hold: both count", "   1. the first counts"]


def test_a_step_that_was_planted_is_found_though_both_of_its_states_are_known():
    back = {(3, 3): ("the second forgets", (3, 2))}

    def steps(state: Counters) -> Iterator[tuple[str, Counters]]:
        yield from _counting(state)
        if state in back:
            yield back[state]

    def broken(before: Counters, after: Counters) -> str | None:
        return "shrinks" if after < before else None

    found = explore(replace(WHOLE, steps=steps, broken=broken))
    assert found.violation == "shrinks"
    assert found.trace[-1] == "the second forgets"


def test_a_state_with_something_left_to_do_and_no_next_one_is_found():
    def never(_: Counters) -> bool:
        return False

    found = explore(replace(WHOLE, is_over=never))
    assert found.violation == STUCK
    assert len(found.trace) == 6


def test_an_end_that_is_not_settled_is_found():
    def unsettled(_: Counters) -> str:
        return "is not empty"

    found = explore(replace(WHOLE, unsettled=unsettled))
    assert (found.violation, found.ends) == ("is not empty", 1)
