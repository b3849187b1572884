"""A ledger that fills itself through Dagster's queue, while everything of Dagster's is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets_tests.e2e.polling import DeadlineError, until
from backfill_assets_tests.faults import checks
from backfill_assets_tests.faults.bases import RESTATED, later_moves
from backfill_assets_tests.faults.campaign import Campaign
from backfill_assets_tests.faults.ledger import CHECKOUT, new_ledger
from backfill_assets_tests.faults.oracle import first_moves
from backfill_assets_tests.faults.processes import start
from backfill_assets_tests.faults.readers import Reader, growing_to, one_of
from backfill_assets_tests.faults.services import CODE, DAEMON, WEB, Services, served
from backfill_assets_tests.faults.trials import Outcome, closed

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.faults.ledger import Ledger
    from backfill_assets_tests.faults.oracle import World
    from backfill_assets_tests.faults.trials import Bench

SENSOR = "gap_fill_sensor"
PATIENCE = 1800.0
_CANCEL = "cancel"
SETTINGS = {
    "BACKFILL_LEASE_SECONDS": "10",
    "BACKFILL_SPARK_MASTER": "local[2]",
    "BACKFILL_CELLS_PER_RUN": "8",
}


@dataclass
class Killer:
    """Kills something of Dagster's every few seconds, as long as there are kills left.

    Attributes:
        services: whose.
        chance: draws what and when.
        left: how many kills.
        outcome: takes note of each.
    """

    services: Services
    chance: random.Random
    left: int
    outcome: Outcome

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Go on killing until something is done, then wait for it without."""
        ended = self.left // 2
        while self.left > ended and not done():
            time.sleep(self.chance.uniform(4, 14))
            hit = self._one()
            if hit:
                self.left -= 1
                self.outcome.hits.append(f"kill of the {hit}, until {what}")
                Campaign.say(f"{self.outcome.name}: kill of the {hit}, until {what}")
        until(lambda: done() or None, seconds=PATIENCE, what=what, every=2)

    def _one(self) -> str | None:
        [name] = self.chance.choices(
            ("run worker", "JVM", DAEMON, CODE, WEB, _CANCEL), weights=(4, 3, 2, 2, 1, 1)
        )
        if name == _CANCEL:
            if self.services.cancel_a_run():
                self.outcome.hits.append("a run cancelled in the UI")
            return None
        if name in self.services.commands:
            self.services.kill(name)
            return name
        below = self.services.below("java" if name == "JVM" else "spawn_main")
        if not below:
            return None
        with suppress(ProcessLookupError):
            os.kill(self.chance.choice(below), signal.SIGKILL)
        return name


def queue_life(bench: Bench, name: str, *, kills: int) -> Outcome:
    """Let the sensor fill a ledger and build a queued plan, under fire, without a command."""
    began, outcome = time.monotonic(), Outcome(f"queue {name}")
    ledger = new_ledger(bench.folder_of(outcome), more=SETTINGS)
    ledger.land(first_moves())
    chance = random.Random(name)  # noqa: S311 - that it can be drawn again is the point
    first, later = bench.known["first"], bench.known["later"]
    with served(ledger, CHECKOUT / "dagster.yaml") as services:
        services.switch_on(SENSOR)
        killer = Killer(services, chance, kills, outcome)
        try:
            with Reader(ledger, growing_to(first)) as reader:
                killer.until(lambda: is_whole(ledger, first), "the history is filled")
            noted(outcome, reader)
            ledger.land(later_moves())
            with Reader(ledger, one_of(first, later)) as reader:
                _restate(bench, ledger, killer)
            noted(outcome, reader)
        except DeadlineError as error:
            missing = list(checks.whole(ledger, first))
            outcome.violations.append(f"{error}: {missing[:3]}")
    if not outcome.violations:
        outcome.violations += bench.looked_through(ledger, later)
    return closed(outcome, ledger, began)


def _restate(bench: Bench, ledger: Ledger, killer: Killer) -> None:
    """Plan, and leave it to the queue; then promote, as a person would."""
    said = bench.bases.do(ledger, "plan", "--restate", RESTATED, "--json", code=2)
    plan = json.loads(said[said.index("{") :])["plan_id"]
    bench.bases.do(ledger, "apply", plan, "--queue")
    status = f"SELECT status FROM plans WHERE plan_id = '{plan}'"  # noqa: S608 - a test's own

    def is_built() -> bool:
        return checks.ask(ledger.settings.state, status)[0]["status"] in ("built", "promoted")

    killer.left = max(killer.left, 1) * 2
    killer.until(is_built, "the queued plan is built")
    ended = start(ledger, ("promote", plan, "--yes"), **bench.bases.engine)
    if ended.wait() != 0:
        killer.outcome.violations.append(f"promote failed: {ended.said[-800:]}")


def is_whole(ledger: Ledger, expected: World) -> bool:
    """Whether everything is there, as it must be."""
    try:
        return not list(checks.whole(ledger, expected))
    except Exception:  # noqa: BLE001 - nothing is published yet
        return False


def noted(outcome: Outcome, reader: Reader) -> None:
    """Keep what a reader saw."""
    outcome.looks = (outcome.looks[0] + reader.looks, outcome.looks[1] + reader.states)
    outcome.violations += reader.found[:3]
