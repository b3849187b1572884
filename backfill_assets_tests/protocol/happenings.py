"""What may happen next: a step of a process, its death or its silence, and time that passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol import (
    collecting,
    filling,
    invariants,
    joining,
    publishing,
    turns,
)
from backfill_assets_tests.protocol.explorer import System
from backfill_assets_tests.protocol.world import (
    DEAD,
    DONE,
    OVER,
    Actor,
    Operation,
    Process,
    fresh,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.rules import Rules
    from backfill_assets_tests.protocol.world import World

STEPS: dict[str, Callable[[Actor], Iterator[Outcome]]] = {
    **turns.STEPS,
    **filling.STEPS,
    **publishing.STEPS,
    **collecting.STEPS,
    **joining.STEPS,
}


def system(first: World, rules: Rules) -> System[World]:
    """Give what is explored from a world on."""

    def unsettled(world: World) -> str | None:
        return invariants.unsettled(recovered(world, rules))

    return System(
        first=first,
        steps=lambda world: happenings(world, rules),
        violated=invariants.violated_after,
        broken=invariants.broken_between,
        is_over=is_over,
        unsettled=unsettled,
    )


def is_over(world: World) -> bool:
    """Whether no process is at work."""
    return all(process.at in OVER for process in world.processes)


def happenings(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Give all that may happen next, in words, and what comes of it."""
    for index, process in enumerate(world.processes):
        who = f"process {index} ({process.program[0].kind})"
        if process.at == DEAD:
            yield f"{who} is started again", _put(world, index, _started(world, process))
        elif process.at != DONE:
            for said, after in STEPS[process.at](Actor(world, index, rules)):
                yield f"{who} {said}", after.world
            yield from _struck(world, index, who)
    yield from _later(world)


def _struck(world: World, index: int, who: str) -> Iterator[tuple[str, World]]:
    process = world.processes[index]
    if process.at == f"{process.program[0].kind}.begin":
        return  # it has done nothing yet, and holds nothing
    if world.crashes:
        dead = Process(process.program, DEAD, process.life, silent=True, memory=fresh(world))
        yield f"{who} dies", _put(world._replace(crashes=world.crashes - 1), index, dead)
    if world.lapses and not process.silent:
        silent = process._replace(silent=True)
        said = f"{who} is silent for longer than its lease"
        yield said, _put(world._replace(lapses=world.lapses - 1), index, silent)


def _later(world: World) -> Iterator[tuple[str, World]]:
    if is_over(world):
        return
    if world.days:
        tables = tuple(
            table._replace(old=table.files, old_head=table.head) for table in world.tables
        )
        yield "the collector's grace passes", world._replace(tables=tables, days=world.days - 1)
    if world.expiries:
        over = world._replace(expiries=world.expiries - 1, expired=True)
        yield "the promise of a way back runs out", over


def _started(world: World, process: Process) -> Process:
    """Start a process again at the command that it died in."""
    first = f"{process.program[0].kind}.begin"
    return Process(process.program, first, process.life + 1, memory=fresh(world))


def _put(world: World, index: int, process: Process) -> World:
    all_ = world.processes
    return world._replace(processes=(*all_[:index], process, *all_[index + 1 :]))


def recovered(world: World, rules: Rules) -> World:
    """Let one more process account for whatever was left, undisturbed."""
    settler = Process((Operation("settle"),), "settle.begin", memory=fresh(world))
    now = world._replace(processes=(*world.processes, settler), crashes=0, lapses=0)
    index = len(world.processes)
    for _ in range(_ENOUGH):
        if now.processes[index].at == DONE:
            break
        following = next(STEPS[now.processes[index].at](Actor(now, index, rules)), None)
        if following is None:
            break
        now = following[1].world
    return now


_ENOUGH = 500
"""Steps after which a recovery counts as one that does not end."""
