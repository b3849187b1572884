"""All at once: two queued plans, a backfill of the UI, the sensor, the command, and three readers."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets_tests.e2e.polling import DeadlineError, until
from backfill_assets_tests.faults import checks
from backfill_assets_tests.faults.bases import RESTATED, later_moves
from backfill_assets_tests.faults.ledger import CHECKOUT, Ledger
from backfill_assets_tests.faults.processes import start
from backfill_assets_tests.faults.queue_life import PATIENCE, SENSOR, SETTINGS, noted
from backfill_assets_tests.faults.readers import Reader, one_of
from backfill_assets_tests.faults.services import Services, served
from backfill_assets_tests.faults.trials import Outcome, closed

if TYPE_CHECKING:
    from backfill_assets_tests.faults.trials import Bench

_BESIDE = "ledger.three_days:2024-02-04..2024-02-04"
_LAUNCHED = ("2024-02-02", "2024-02-03", "2024-02-04")
_READERS = 3


def chorus(bench: Bench, name: str) -> Outcome:
    """Let all of them work on one ledger, and see that nobody disturbs another."""
    began, outcome = time.monotonic(), Outcome(f"all at once {name}")
    base = bench.bases.copy("filled", bench.folder_of(outcome))
    ledger = replace(base.ledger, more=SETTINGS)
    ledger.land(later_moves())
    first, later = bench.known["first"], bench.known["later"]
    with served(ledger, CHECKOUT / "dagster.yaml") as services, ExitStack() as reading:
        readers = [
            reading.enter_context(Reader(ledger, one_of(first, later))) for _ in range(_READERS)
        ]
        try:
            _sing(bench, ledger, services, outcome)
        except (AssertionError, DeadlineError) as error:
            outcome.violations.append(f"{type(error).__name__}: {error}"[:1500])
    for reader in readers:
        noted(outcome, reader)
    outcome.violations += list(checks.whole(ledger, later))
    if not outcome.violations:
        outcome.violations += bench.looked_through(ledger, later)
    return closed(outcome, ledger, began)


def _sing(bench: Bench, ledger: Ledger, services: Services, outcome: Outcome) -> None:
    services.switch_on(SENSOR)
    plans = [_queued(bench, ledger, what) for what in (RESTATED, _BESIDE)]
    backfill = services.client.launch("ledger.entries", partitionNames=list(_LAUNCHED))
    beside = start(ledger, ("run",), **bench.bases.engine)
    for plan in plans:
        until(lambda plan=plan: _is_built(ledger, plan) or None, seconds=PATIENCE, what=plan)
    ended = services.client.ended(backfill)
    outcome.hits.append(f"a backfill of the UI ended {ended}, `run` with {beside.wait()}")
    for plan in plans:
        if not _is_built(ledger, plan, "promoted"):
            bench.bases.do(ledger, "promote", plan, "--yes")


def _queued(bench: Bench, ledger: Ledger, what: str) -> str:
    said = bench.bases.do(ledger, "plan", "--restate", what, "--json", code=2)
    plan = json.loads(said[said.index("{") :])["plan_id"]
    bench.bases.do(ledger, "apply", plan, "--queue")
    return plan


def _is_built(ledger: Ledger, plan: str, *also: str) -> bool:
    asked = f"SELECT status FROM plans WHERE plan_id = '{plan}'"  # noqa: S608 - a test's own
    wanted = also or ("built", "promoted")
    return checks.ask(ledger.settings.state, asked)[0]["status"] in wanted
