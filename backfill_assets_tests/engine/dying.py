"""Processes that die: after a step of a batch, and from then on nothing of theirs reaches the state.

An exception alone would still run every clean-up; a killed process runs none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backfill_assets.state.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from backfill_assets_tests.engine.world import World


class Killed(BaseException):
    """The process is gone."""


class MortalStore(Store):
    """A store whose process may die: it answers nothing afterwards."""

    dead = False

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        asked = not name.startswith("_") and name not in ("dead", "close", "die", "lease_seconds")
        if asked and object.__getattribute__(self, "dead"):
            raise Killed
        return super().__getattribute__(name)

    def die(self, *_: object, **__: object) -> Any:  # noqa: ANN401
        self.dead = True
        raise Killed


STEPS = {
    "open": "inputs",
    "compute": "audited",
    "audit": "turn",
    "lock": "commit",
    "commit": "record",
}
"""After which step, and which of the effects comes next in its place."""


def mortal(world: World) -> MortalStore:
    return MortalStore.open(
        f"sqlite:///{world.root / 'state.db'}",
        clock=world.clock,
        lease_seconds=world.store.lease_seconds,
        data_root=str(world.root),
    )


def die_after(step: str, world: World) -> None:
    """Let the process of a world whose store is mortal die right after a step of a batch."""
    store: Any = world.store
    if step == "record":
        store.locks.release_commit_lock = store.die
        return
    world.effects = replace(world.effects, **{STEPS[step]: store.die})


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
