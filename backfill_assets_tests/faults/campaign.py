"""A campaign: lives under fire until enough processes were killed, its results kept line by line."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from backfill_assets_tests.faults.hits import (
    Asleep,
    AtAnyTime,
    AtInstant,
    AtMoment,
    AtStep,
    Hit,
    JvmAtStep,
    WhileWriting,
)
from backfill_assets_tests.faults.trials import LIFE, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from backfill_assets_tests.faults.trials import Bench, Work
    from backfill_assets_tests.protocol.report import Told

_DEEP, _HITS = 30, 14
_OPEN_SHARE = 0.5
_SLEEPS = {
    "fill": ("write_files:1:after", "set_cells:2:before", "record:2:before", "record:1:after"),
    "apply in place": ("set_cells:1:before", "write_files:2:after", "open_workspace:1:before"),
    "promote in place": (
        "copy_cells:1:before",
        "copy_cells:2:after",
        "copy_files:3:after",
        "publish:1:before",
    ),
    "rollback in place": ("restore_cells:2:before", "publish:1:before", "note_promotion:1:after"),
    "collect": (
        "delete_table:1:before",
        "delete_files:1:before",
        "join_files:1:after",
        "exchange_files:1:before",
        "follow_head:1:before",
    ),
}
_JVM_DIES = {
    "fill": "write_files:1:before",
    "apply in place": "write_files:1:before",
    "promote in place": "copy_cells:2:before",
    "rollback in place": "restore_cells:1:before",
    "collect": "exchange_files:1:before",
}


@dataclass
class Campaign:
    """What was tried so far.

    Attributes:
        results: a file with a line per outcome; one that is there is gone on with.
        outcomes: all of them.
    """

    results: Path
    outcomes: list[Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.results.exists():
            lines = self.results.read_text().splitlines()
            self.outcomes = [Outcome(**json.loads(line)) for line in lines]

    @property
    def kills(self) -> int:
        return sum(outcome.kills for outcome in self.outcomes)

    @property
    def violations(self) -> list[str]:
        return [
            f"{outcome.name}: {text}" for outcome in self.outcomes for text in outcome.violations
        ]

    @property
    def met(self) -> set[str]:
        """Which moments of which commands there were."""
        return {step for outcome in self.outcomes for step in outcome.met}

    @property
    def hit(self) -> set[str]:
        """At which of them something was hit."""
        return {step for outcome in self.outcomes for step in map(_step_of, outcome.hits) if step}

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, and say how it went."""
        self.outcomes.append(outcome)
        with self.results.open("a") as out:
            out.write(json.dumps(asdict(outcome)) + "\n")
        wrong = f", {len(outcome.violations)} VIOLATIONS" if outcome.violations else ""
        self.say(
            f"{outcome.name}: {outcome.kills} kills, {len(outcome.hits) - outcome.kills} other hits"
            f", {outcome.seconds:.0f} s, {outcome.looks[0]} looks at {outcome.looks[1]} states"
            f"{wrong}; {self.kills} kills in all"
        )
        for text in outcome.violations:
            self.say(f"    {text}")

    def once(self, name: str, made: Callable[[], Outcome]) -> None:
        """Do something unless an earlier run has done it."""
        if all(outcome.name != name for outcome in self.outcomes):
            self.add(made())

    def close(self, protocol: Told) -> int:
        """Say what came of it all, the model of the protocol included, and give the exit code."""
        violations = [*(f"protocol: {text}" for text in protocol.violations), *self.violations]
        for text in violations:
            self.say(f"violation: {text}")
        self.say(f"moments of effects: {len(self.met)} met, {len(self.met & self.hit)} of them hit")
        slept = sum(hit.startswith("sleep") for outcome in self.outcomes for hit in outcome.hits)
        self.say(f"woken after a takeover: {slept}")
        self.say(str(protocol))
        self.say(f"kills: {self.kills}, violations: {len(violations)}")
        return 1 if violations else 0

    def uncovered(self, work: Work) -> list[str]:
        """Give the moments of a command that were met, but never hit."""
        open_ = self.met - self.hit
        mine = sorted(step for step in open_ if step.startswith(f"{work.name}|"))
        return [step.partition("|")[2] for step in mine]

    @staticmethod
    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def live(bench: Bench, campaign: Campaign, *, kills: int, seed: int) -> None:
    """Let ledger after ledger live under fire until so many processes were killed in all."""
    number = 0
    while campaign.kills < kills:
        name = f"life {seed}.{number}"
        if all(outcome.name != name for outcome in campaign.outcomes):
            campaign.add(bench.life(_hits(campaign, random.Random(name)), f"{seed}.{number}"))  # noqa: S311
        number += 1


def _hits(campaign: Campaign, chance: random.Random) -> Iterator[Sequence[Hit]]:
    for work in LIFE:
        yield [_hit(campaign, work, chance) for _ in range(_HITS)]


def _hit(campaign: Campaign, work: Work, chance: random.Random) -> Hit:
    """Draw a hit: every other one at an effect that was not hit yet, as long as there is one."""
    uncovered = campaign.uncovered(work)
    if uncovered and chance.random() < _OPEN_SHARE:
        step, _, when = chance.choice(uncovered).partition(":")
        return AtStep(f"{step}:1:{when}")
    how = chance.choice(("session", "jvm", "sleep"))
    [drawn] = chance.choices(
        (
            AtMoment(chance.randint(1, _DEEP)),
            AtAnyTime(chance.uniform(1, 9)),
            Asleep(chance.choice(_SLEEPS[work.name])),
            WhileWriting(how, chance.randint(1, 6)),
            AtInstant(how, chance.uniform(5, 30)),
            JvmAtStep(_JVM_DIES[work.name]),
        ),
        weights=(16, 10, 5, 1, 1, 1),
    )
    return drawn


_AN_EFFECT = re.compile(r" at (?P<name>\w+):\d+:(?P<when>\w+) of (?P<work>.+)$")


def _step_of(hit: str) -> str | None:
    """Give `work|name:when` of a hit at an effect."""
    found = _AN_EFFECT.search(hit)
    return found and "{work}|{name}:{when}".format(**found.groupdict())
