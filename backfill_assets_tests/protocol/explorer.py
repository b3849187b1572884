"""The explorer: visits every state that can be reached, breadth first, and tells how it got there."""

from __future__ import annotations

import gc
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

STUCK = "as long as something is left to do, a process can go on"


@dataclass(frozen=True, slots=True)
class System(Generic[T]):
    """What is explored.

    Attributes:
        first: the state in which it begins.
        steps: gives what may happen next, in words, and what comes of it.
        violated: says what does not hold in a state that is reached from another one, or from itself.
        broken: says what a step may not do.
        is_over: whether a state needs no next one.
        unsettled: says what does not hold in a state that has no next one.
    """

    first: T
    steps: Callable[[T], Iterator[tuple[str, T]]]
    violated: Callable[[T, T], str | None]
    broken: Callable[[T, T], str | None]
    is_over: Callable[[T], bool]
    unsettled: Callable[[T], str | None]


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration has found.

    Attributes:
        states: how many different states there are, or were before the first violation.
        steps: how many steps lead from one to another.
        ends: how many of the states are over.
        violation: what does not hold; None for nothing.
        trace: how it comes to that, in words.
    """

    states: int
    steps: int
    ends: int
    violation: str | None = None
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write a violation and how it comes to it, a line per step."""
        if self.violation is None:
            return f"no violation in {self.states:,} states"
        told = (f"{number:>4}. {said}" for number, said in enumerate(self.trace, 1))
        return "\n".join((f"does not hold: {self.violation}", *told))


def explore(system: System[T]) -> Explored:
    """Visit every state, and stop at the first that violates something: no shorter way leads to one."""
    collects = gc.isenabled()
    gc.disable()  # States are never in a cycle, and there are millions of them to look through.
    try:
        return _explored(system)
    finally:
        if collects:
            gc.enable()


def _explored(system: System[T]) -> Explored:
    came_from: dict[T, T | None] = {system.first: None}
    waiting, steps, ends = deque([system.first]), 0, 0
    if wrong := system.violated(system.first, system.first):
        return Explored(1, 0, 0, wrong)
    while waiting:
        state = waiting.popleft()
        stuck = True
        for _, after in system.steps(state):
            stuck, steps = False, steps + 1
            wrong = system.broken(state, after)
            if after not in came_from:
                came_from[after] = state
                waiting.append(after)
                wrong = wrong or system.violated(state, after)
            if wrong:
                trace = (*_told(system, came_from, state), _said(system, state, after))
                return Explored(len(came_from), steps, ends, wrong, trace)
        if over := system.is_over(state):
            ends += 1
        if wrong := system.unsettled(state) if over else STUCK if stuck else None:
            trace = _told(system, came_from, state)
            return Explored(len(came_from), steps, ends, wrong, trace)
    return Explored(len(came_from), steps, ends)


def _told(system: System[T], came_from: dict[T, T | None], last: T) -> tuple[str, ...]:
    """Tell the steps that lead to a state."""
    way = [last]
    while (before := came_from[way[-1]]) is not None:
        way.append(before)
    way.reverse()
    return tuple(_said(system, way[at], way[at + 1]) for at in range(len(way) - 1))


def _said(system: System[T], before: T, after: T) -> str:
    return next(said for said, found in system.steps(before) if found == after)
