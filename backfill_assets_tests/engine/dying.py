"""Worlds whose process dies after a step of a batch, and things that happen right before a step."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.testing.dying import DEATHS, Killed, MortalStore
from backfill_assets_tests.engine.world import World

__all__ = [
    "STEPS",
    "Killed",
    "MortalStore",
    "before",
    "before_call",
    "die_after",
    "doomed",
    "mortal",
]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


STEPS = DEATHS
"""After which step, and which of the effects comes next in its place."""


def mortal(world: World) -> MortalStore:
    return MortalStore.open(
        f"sqlite:///{world.root / 'state.db'}",
        clock=world.clock,
        lease_seconds=world.store.lease_seconds,
        data_root=str(world.root),
    )


@contextmanager
def doomed(
    world: World,
    death: Callable[[MortalStore, pytest.MonkeyPatch], None],
    patch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """Give a process that dies as `death` arranges it; what is done in the block must end so."""
    with mortal(world) as store, patch.context() as arranged:
        process = World(world.spark, world.root, store, world.clock, runs=100)
        death(store, arranged)
        with pytest.raises(Killed):
            yield process


def die_after(step: str, world: World) -> None:
    """Let the process of a world whose store is mortal die right after a step of a batch."""
    store: Any = world.store
    if step == "record":
        store.locks.release_commit_lock = store.die
    else:
        world.effects = replace(world.effects, **{DEATHS[step]: store.die})


def before(world: World, step: str, first: Callable[[], object]) -> None:
    """Do something once, right before the next batch's step."""
    usual, once = world.effects, iter([first])
    real = getattr(usual, step)

    def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        world.effects = usual
        next(once, bool)()
        return real(*given, **named)

    world.effects = replace(usual, **{step: stepped})


def before_call(
    place: object, name: str, first: Callable[[], object], patch: pytest.MonkeyPatch
) -> None:
    """Do something once, right before a function of a module is called."""
    real = getattr(place, name)

    def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        patch.setattr(place, name, real)
        first()
        return real(*given, **named)

    patch.setattr(place, name, stepped)
