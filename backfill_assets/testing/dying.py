"""Processes that die at a named step of a batch: from then on nothing of theirs reaches the state.

An exception alone would still run every clean-up; a killed process runs none.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from backfill_assets.cli import project as cli_project
from backfill_assets.engine.batch import effects
from backfill_assets.errors import RequestError
from backfill_assets.state.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.engine.batch.effects import Effects


class Killed(BaseException):
    """The process is gone."""


class MortalStore(Store):
    """A store whose process may die: it answers nothing afterwards."""

    dead = False

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        """Give an attribute.

        Raises:
            Killed: the process has died.
        """
        is_guarded = not name.startswith("_") and name not in (
            "dead",
            "close",
            "die",
            "lease_seconds",
        )
        if is_guarded and object.__getattribute__(self, "dead"):
            raise Killed
        return super().__getattribute__(name)

    def die(self, *_: object, **__: object) -> Any:  # noqa: ANN401
        """Be dead from now on.

        Raises:
            Killed: always.
        """
        self.dead = True
        raise Killed


DEATHS = {
    "open": "inputs",
    "compute": "audited",
    "audit": "turn",
    "lock": "commit",
    "commit": "record",
}
"""After which step of a batch a process can die, and which of its effects comes next in its place.

Right after ``record`` it can die as well; by then the batch is published.
"""


@contextmanager
def dying_at(step: str, *, batch: int = 1) -> Iterator[None]:
    """Let the commands of this process die right after a step of a batch.

    What was claimed stays claimed until its lease ends: see `leases_over`.

    Args:
        step: ``open``, ``compute``, ``audit``, ``lock``, ``commit`` or ``record``.
        batch: in which batch that comes so far; batches that run side by side count in the order in
            which they come to the step.

    Raises:
        RequestError: there is no such step.
    """
    if step not in (*DEATHS, "record"):
        raise RequestError(
            found=f"no process can die after {step!r}",
            expected=f"one of {', '.join((*DEATHS, 'record'))}",
            do="name one of these steps",
        )
    opened: list[MortalStore] = []

    class _Opened(MortalStore):
        @classmethod
        def open(cls, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as a store is opened
            store = super().open(*given, **named)
            opened.append(store)
            return store

    usual = effects.USUAL
    dying = replace(usual, **{DEATHS.get(step, "record"): _nth(usual, step, batch, opened)})
    with patch.object(cli_project, "Store", _Opened), patch.object(effects, "USUAL", dying):
        yield


def _nth(usual: Effects, step: str, batch: int, opened: list[MortalStore]) -> Callable[..., Any]:
    """Give an effect that does what it usually does until its n-th time."""
    real: Callable[..., Any] = getattr(usual, DEATHS.get(step, "record"))
    times = iter(range(1, batch + 1))

    def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        last = next(times, batch) == batch
        if last and step != "record":
            opened[-1].die()
        done = real(*given, **named)
        if last:
            opened[-1].die()
        return done

    return stepped
