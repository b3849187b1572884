"""Trials: commands at work, what may be seen meanwhile, and what must hold afterwards."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets_tests.faults import checks
from backfill_assets_tests.faults.bases import RESTATED, later_moves, worlds
from backfill_assets_tests.faults.ledger import new_ledger
from backfill_assets_tests.faults.oracle import first_moves
from backfill_assets_tests.faults.processes import HangsError, start
from backfill_assets_tests.faults.readers import Reader, growing_to, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.faults.bases import Bases
    from backfill_assets_tests.faults.hits import Hit
    from backfill_assets_tests.faults.ledger import Ledger
    from backfill_assets_tests.faults.oracle import World

    Around = Callable[["Ledger"], AbstractContextManager[object]]

_TRIES = 3


@dataclass(frozen=True)
class Work:
    """A command that is interrupted.

    Attributes:
        name: of the trial.
        base: the stage that it works on.
        words: the command; `{plan}` stands for the plan of the stage.
        before: the world that is published before it.
        after: and after it.
        grows: whether cells may come one by one; else a reader sees the one world or the other.
    """

    name: str
    base: str
    words: tuple[str, ...]
    before: str
    after: str
    grows: bool = False


FILL = Work("fill", "half", ("run",), "first", "first", grows=True)
APPLY = Work("apply in place", "restating", ("apply", "{plan}"), "first", "first")
PROMOTE = Work("promote in place", "restated", ("promote", "{plan}", "--yes"), "first", "later")
ROLLBACK = Work("rollback in place", "promoted", ("rollback", "{plan}", "--yes"), "later", "first")
COLLECT = Work("collect", "rolled", ("gc", "--yes"), "first", "first")
WORKS = (
    Work("first fill", "empty", ("run",), "first", "first", grows=True),
    FILL,
    APPLY,
    PROMOTE,
    ROLLBACK,
    Work("apply anew", "doubling", ("apply", "{plan}"), "first", "first"),
    Work("promote anew", "doubled", ("promote", "{plan}", "--yes"), "first", "doubled"),
    Work("rollback anew", "swapped", ("rollback", "{plan}", "--yes"), "doubled", "first"),
    COLLECT,
)
LIFE = (FILL, APPLY, PROMOTE, ROLLBACK, COLLECT)


@dataclass
class Outcome:
    """What a trial has shown.

    Attributes:
        name: of it.
        hits: what was hit.
        violations: what did not hold.
        seconds: how long it took, checks included.
        again: how often a command needed more than one start to get through.
        looks: how often readers looked, and how many different states they saw.
        folder: kept when something was violated.
        met: which moments of which command there were, hit or not.
    """

    name: str
    hits: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    again: int = 0
    looks: tuple[int, int] = (0, 0)
    folder: str = ""
    met: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """How many processes were killed, not counting those that slept."""
        return sum(hit.startswith("kill") for hit in self.hits)


@dataclass
class Bench:
    """What trials need: stages, a Spark of the harness's own, a scratch folder."""

    bases: Bases
    spark: SparkSession
    folder: Path
    known: dict[str, World] = field(default_factory=worlds)

    def trial(
        self,
        work: Work,
        hits: Sequence[Hit],
        name: str,
        *,
        around: Around = nullcontext,
    ) -> Outcome:
        """Hit a command on a copy of its stage, again and again, and check everything at the end.

        Args:
            work: the command.
            hits: in turn, until it is quicker than one.
            name: of the trial.
            around: what the ledger lives in meanwhile.
        """
        began, outcome = time.monotonic(), Outcome(f"{work.name} {name}")
        base = self.bases.copy(work.base, self.folder_of(outcome))
        with around(base.ledger):
            self.phase(base.ledger, work, base.plan, hits, outcome)
        outcome.violations += self.looked_through(base.ledger, self.known[work.after])
        return closed(outcome, base.ledger, began)

    def life(
        self,
        hits: Iterator[Sequence[Hit]],
        name: str,
        *,
        around: Around = nullcontext,
        state_url: str = "",
    ) -> Outcome:
        """Let one ledger live through everything: filled, restated, promoted, taken back, collected.

        Args:
            hits: for each of the five commands in turn.
            name: of the life.
            around: what the ledger lives in.
            state_url: of its state; empty means an SQLite file in its folder.
        """
        began, outcome = time.monotonic(), Outcome(f"life {name}")
        ledger = new_ledger(self.folder_of(outcome), state_url=state_url)
        ledger.land(first_moves())
        with around(ledger):
            self._lived(ledger, hits, outcome)
        if not outcome.violations:
            outcome.violations += self.looked_through(ledger, self.known["first"])
        return closed(outcome, ledger, began)

    def _lived(self, ledger: Ledger, hits: Iterator[Sequence[Hit]], outcome: Outcome) -> None:
        self.phase(ledger, FILL, "", next(hits), outcome)
        ledger.land(later_moves())
        planned = self.bases.do(ledger, "plan", "--restate", RESTATED, "--json", code=2)
        plan = json.loads(planned[planned.index("{") :])["plan_id"]
        for work in LIFE[1:]:
            if work is COLLECT:
                ledger.move_clock(40 * 86_400)
            self.phase(ledger, work, plan, next(hits), outcome)
            if outcome.violations:
                return

    def phase(
        self, ledger: Ledger, work: Work, plan: str, hits: Sequence[Hit], outcome: Outcome
    ) -> None:
        """Hit one command until it is through, readers looking on, and check what is cheap."""
        words = tuple(word.format(plan=plan) for word in work.words)
        after = self.known[work.after]
        judge = growing_to(after) if work.grows else one_of(self.known[work.before], after)
        with Reader(ledger, judge) as reader:
            try:
                for hit in hits:
                    found = hit(ledger, words, self.bases.engine)
                    ledger.pass_lease()
                    if found is None:
                        break
                    outcome.hits.append(f"{found} of {work.name}")
                self._through(ledger, words, outcome)
            except HangsError as error:
                outcome.violations.append(str(error))
        outcome.looks = (outcome.looks[0] + reader.looks, outcome.looks[1] + reader.states)
        outcome.violations += reader.found[:3]
        trace = ledger.folder / "trace"
        if trace.exists():
            steps = {_unnumbered(step) for step in trace.read_text().split()}
            outcome.met += [f"{work.name}|{step}" for step in sorted(steps)]
            trace.unlink()
        outcome.violations += _made(lambda: checks.whole(ledger, after))

    def _through(self, ledger: Ledger, words: tuple[str, ...], outcome: Outcome) -> None:
        """Start the command again, as a supervisor would, until there is nothing left for it."""
        said = ""
        for number in range(_TRIES):
            ended = start(ledger, words, **self.bases.engine)
            code, said = ended.wait(), ended.said
            if code == 0 or _is_done(said):
                outcome.again += number
                return
        outcome.violations.append(f"the command did not get through: {said[-1500:]}")

    def looked_through(self, ledger: Ledger, after: World) -> list[str]:
        """Make the checks that are made once: a rebuilt state, and what `gc` leaves."""
        found = _made(lambda: checks.rebuilt(ledger))
        found += _made(lambda: checks.collected(ledger, self.spark))
        return found + _made(lambda: checks.published(ledger, after))

    def folder_of(self, outcome: Outcome) -> Path:
        """Give a trial a folder that is not there yet."""
        folder = self.folder / outcome.name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        return folder


def _unnumbered(step: str) -> str:
    name, _, when = step.split(":")
    return f"{name}:{when}"


def _made(check: object) -> list[str]:
    try:
        return list(check())  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - a check that can't be made is no check
        return [f"a check ended with {type(error).__name__}: {error}"[:800]]


def closed(outcome: Outcome, ledger: Ledger, began: float) -> Outcome:
    """Note how long it took; the folder stays when something was violated."""
    outcome.seconds = round(time.monotonic() - began, 1)
    if outcome.violations:
        outcome.folder = str(ledger.folder)
    else:
        shutil.rmtree(ledger.folder)
    return outcome


def _is_done(said: str) -> bool:
    """Whether a command was refused because what it asks for had been done before it died."""
    last = said.rpartition("\n$ backfill")[2]
    return "is promoted" in last or "is rolled back" in last
