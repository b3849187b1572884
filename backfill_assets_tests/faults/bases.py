"""Ledgers in each stage of their life, made once; every trial works on a copy."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from backfill_assets_tests.faults.ledger import Ledger, copied, in_order, new_ledger
from backfill_assets_tests.faults.oracle import Move, World, first_moves, world_of
from backfill_assets_tests.faults.processes import start

if TYPE_CHECKING:
    from pathlib import Path

RESTATED = "ledger.moves:2024-01-30..2024-02-01"


@dataclass(frozen=True)
class Base:
    """A ledger in some stage.

    Attributes:
        ledger: never written to again.
        plan: the plan that is at work on it; empty for none.
    """

    ledger: Ledger
    plan: str = ""


def later_moves() -> list[Move]:
    """What is landed later: of three days, amounts are corrected, moves added and taken away.

    Of the last one only until evening: the hours that follow keep their rows, in files that they share.
    """
    kept = [move for move in first_moves() if move.move_id % 50 or not _late(move)]
    corrected = [
        replace(move, amount=move.amount + Decimal("1.25"))
        if _late(move) and move.move_id % 3 == 0
        else move
        for move in kept
    ]
    added = Move(100_000, "d", datetime(2024, 1, 31, 12, 30, tzinfo=UTC), Decimal("99.99"))
    return sorted([*corrected, added])


def _late(move: Move) -> bool:
    return datetime(2024, 1, 30, tzinfo=UTC) <= move.moved_at < datetime(2024, 2, 1, 18, tzinfo=UTC)


def worlds() -> dict[str, World]:
    """What the tables hold, by name."""
    first, later = first_moves(), later_moves()
    return {
        "first": in_order(world_of(first)),
        "later": in_order(world_of(later)),
        "doubled": in_order(world_of(first, doubled=True)),
    }


class Bases:
    """Makes stages when they are first asked for, and finds those that an earlier run has made.

    Attributes:
        folder: where they lie.
        engine: the variables of the warm JVM.
    """

    def __init__(self, folder: Path, engine: dict[str, str]) -> None:
        self.folder, self.engine = folder, engine
        self._made: dict[str, Base] = {}

    def copy(self, name: str, folder: Path) -> Base:
        """Copy a stage."""
        base = self.base(name)
        return Base(copied(base.ledger, folder), base.plan)

    def base(self, name: str) -> Base:
        """Give a stage, making it and those before it."""
        if name not in self._made:
            folder, mark = self.folder / name, self.folder / f"{name}.made"
            if not mark.exists():
                shutil.rmtree(folder, ignore_errors=True)
                mark.write_text(getattr(self, f"_{name}")(folder).plan)
            self._made[name] = Base(Ledger(folder), mark.read_text())
        return self._made[name]

    def do(self, ledger: Ledger, *words: str, code: int = 0) -> str:
        """Run a command to its end, and insist on how it ends."""
        ledger.folder.joinpath("said.log").unlink(missing_ok=True)
        ended = start(ledger, words, **self.engine)
        found = ended.wait()
        assert found == code, ended.said
        return ended.said

    def _empty(self, folder: Path) -> Base:
        ledger = new_ledger(folder)
        ledger.land(first_moves())
        return Base(ledger)

    def _half(self, folder: Path) -> Base:
        base = self.copy("empty", folder)
        days = "ledger.entries,ledger.daily,ledger.three_days,ledger.hourly"
        self.do(base.ledger, "run", "--select", days, "--end", "2024-02-01")
        self.do(base.ledger, "run", "--select", "ledger.monthly", "--end", "2024-01-31")
        return base

    def _filled(self, folder: Path) -> Base:
        base = self.copy("half", folder)
        self.do(base.ledger, "run")
        return base

    def _restating(self, folder: Path) -> Base:
        ledger = self.copy("filled", folder).ledger
        ledger.land(later_moves())
        return Base(ledger, self._planned(ledger, "--restate", RESTATED))

    def _restated(self, folder: Path) -> Base:
        base = self.copy("restating", folder)
        self.do(base.ledger, "apply", base.plan)
        return base

    def _promoted(self, folder: Path) -> Base:
        base = self.copy("restated", folder)
        self.do(base.ledger, "promote", base.plan, "--yes")
        return base

    def _rolled(self, folder: Path) -> Base:
        base = self.copy("promoted", folder)
        self.do(base.ledger, "rollback", base.plan, "--yes")
        base.ledger.move_clock(3 * 86_400)  # so that `gc` finds something
        return base

    def _doubling(self, folder: Path) -> Base:
        ledger = self.copy("filled", folder).ledger
        ledger.double_daily()
        return Base(ledger, self._planned(ledger))

    def _doubled(self, folder: Path) -> Base:
        base = self.copy("doubling", folder)
        self.do(base.ledger, "apply", base.plan)
        return base

    def _swapped(self, folder: Path) -> Base:
        base = self.copy("doubled", folder)
        self.do(base.ledger, "promote", base.plan, "--yes")
        return base

    def _planned(self, ledger: Ledger, *words: str) -> str:
        said = self.do(ledger, "plan", *words, "--json", code=2)
        return json.loads(said[said.index("{") :])["plan_id"]
