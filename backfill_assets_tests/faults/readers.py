"""Readers who poll what is published, all the time: every state that they saw must be a right one.

Two looks in a row that find the same pointers make a state: between two calls of `resolve` something
may be published, and that would be no mix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from backfill_assets import resolve
from backfill_assets.reading import NotPublishedError
from backfill_assets.state.database import StateUnavailableError
from backfill_assets_tests.faults.ledger import cells_at
from backfill_assets_tests.faults.oracle import MODELS, Cells, World
from backfill_assets_tests.faults.places import is_own_disk
from backfill_assets_tests.looking import Looking

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.reading import Resolved
    from backfill_assets_tests.faults.ledger import Ledger


@dataclass
class Reader(Looking):
    """Polls until it is told to stop, and judges each new state at once.

    Attributes:
        ledger: whose prod.
        judge: given the state before and the new one, what is wrong with it; None for nothing.
        found: what was wrong.
        looks: how often it looked.
        states: how many different states it saw.
    """

    every: ClassVar[float] = 0.2

    ledger: Ledger
    judge: Callable[[World, World], str | None]
    found: list[str] = field(default_factory=list)
    looks: int = 0
    states: int = 0

    def __post_init__(self) -> None:
        self._settings = self.ledger.settings
        self._last: dict[str, Resolved] = {}
        self._world: World = {}
        self._read: dict[tuple[str, int], Cells] = {}

    def look(self) -> None:
        """Look once."""
        try:
            self._looked()
        except Exception as error:  # noqa: BLE001 - a reader must never see one
            mortal = self.ledger.state_url or is_own_disk(self.ledger.data)
            if isinstance(error, StateUnavailableError) and mortal:
                return  # the server is away, or not a byte may be written: no database can be opened
            self.found.append(f"a reader got {type(error).__name__}: {error}"[:500])

    def _looked(self) -> None:
        first = self._pointers()
        world = {name: self._cells(name, pointer) for name, pointer in first.items()}
        self.looks += 1
        if first != self._pointers() or first == self._last:
            return
        self.states += 1
        wrong = self.judge(self._world, world)
        if wrong:
            self.found.append(
                f"a reader saw {wrong}; pins {_pins(first)}, before {_pins(self._last)}"
            )
        self._last, self._world = first, world

    def _pointers(self) -> dict[str, Resolved]:
        found: dict[str, Resolved] = {}
        for name in MODELS:
            try:
                found[name] = resolve(name, settings=self._settings)
            except NotPublishedError:
                if name in self._last:
                    raise
        return found

    def _cells(self, name: str, at: Resolved) -> Cells:
        if at not in self._read:
            self._read[at] = cells_at(name, at.path, at.delta_version)
        return self._read[at]


def _pins(found: dict[str, Resolved]) -> dict[str, tuple[str, int]]:
    return {
        name: (resolved.path.rsplit("__", 1)[-1], resolved.delta_version)
        for name, resolved in found.items()
    }


def one_of(*worlds: World) -> Callable[[World, World], str | None]:
    """Every state must be one of these, as a whole."""

    def judge(_: World, seen: World) -> str | None:
        if seen in worlds:
            return None
        nearest = worlds[-1]
        return f"a mix: {differences(seen, nearest)}"

    return judge


def growing_to(final: World) -> Callable[[World, World], str | None]:
    """Cells may come, whole and right; none may go or change."""

    def judge(before: World, seen: World) -> str | None:
        for name, cells in seen.items():
            for cell, rows in cells.items():
                if rows != final[name].get(cell):
                    return f"{name} {cell} with {len(rows)} rows that are not its own"
            lost = set(before.get(name, {})) - set(cells)
            if lost:
                return f"{name} without {sorted(map(str, lost))}, which was there"
        return None

    return judge


def differences(found: World, expected: World) -> str:
    """Say where two worlds differ."""
    lines: list[str] = []
    for name in MODELS:
        cells, other = found.get(name, {}), expected.get(name, {})
        differing = sorted(cell for cell in {*cells, *other} if cells.get(cell) != other.get(cell))
        if differing:
            cell = differing[0]
            lines.append(
                f"{name}: {len(differing)} cells differ, first {cell}: "
                f"{cells.get(cell, [])[:2]} ({len(cells.get(cell, []))} rows) instead of "
                f"{other.get(cell, [])[:2]} ({len(other.get(cell, []))} rows)"
            )
    return "; ".join(lines) or "nothing"
