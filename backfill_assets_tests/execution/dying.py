"""Processes that die: after a step of a batch, and from then on nothing of theirs reaches the state.

An exception alone would still run every clean-up; a killed process runs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.execution import batch_run, computing
from backfill_assets.state.store import Store
from backfill_assets.warehouse.computed import ComputedBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from backfill_assets_tests.execution.world import World


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


STEPS: dict[str, tuple[object, str]] = {
    "open": (computing, "batch_inputs"),
    "compute": (batch_run, "audited"),
    "audit": (batch_run, "commit_turn"),
    "lock": (ComputedBatch, "commit"),
    "commit": (batch_run, "record"),
}
"""After which step, and what comes next in its place."""


def mortal(world: World) -> MortalStore:
    return MortalStore.open(
        f"sqlite:///{world.root / 'state.db'}",
        clock=world.clock,
        lease_seconds=world.store.lease_seconds,
        data_root=str(world.root),
    )


def die_after(step: str, store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    """Let the process die right after a step."""
    if step == "record":
        patch.setattr(store, "release_commit_lock", store.die, raising=True)
        return
    place, name = STEPS[step]
    patch.setattr(place, name, store.die)


def before(
    place: object, name: str, first: Callable[[], object], patch: pytest.MonkeyPatch
) -> None:
    """Do something once, right before a step."""
    real = getattr(place, name)

    def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        patch.setattr(place, name, real)
        first()
        return real(*given, **named)

    patch.setattr(place, name, stepped)
