"""Faults that kill nobody: each is given to a command, taken away, and then all must be well."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

from backfill_assets_tests.faults.hits import Asleep, AtStep, JvmAtStep, WhileWriting
from backfill_assets_tests.faults.places import Disk, NoDiskError, is_own_disk, own_disk
from backfill_assets_tests.faults.processes import start
from backfill_assets_tests.faults.storm import storm
from backfill_assets_tests.faults.trials import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Run = Callable[["Ledger", tuple[str, ...], Mapping[str, str]], int]
    from backfill_assets_tests.faults.hits import Hit
    from backfill_assets_tests.faults.ledger import Ledger
    from backfill_assets_tests.faults.trials import Bench


HOUR = 3600.0


class Fault:
    """Lets a command run into something once; it must end by itself, and say so plainly."""

    def __init__(self, name: str, run: Run) -> None:
        self._name, self._run = name, run
        self.wrong: list[str] = []

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        said = ledger.folder / "said.log"
        before = said.stat().st_size if said.exists() else 0
        code = self._run(ledger, words, engine)
        text = said.read_text()[before:]
        if "Traceback" in text:
            self.wrong.append(f"{self._name}: a traceback reaches the person: {text[-1500:]}")
        return f"{self._name}, ended with {code}"


def full_disk(left: int) -> Fault:
    """Almost nothing of the disk is left."""

    def run(ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]) -> int:
        if not is_own_disk(ledger.data):
            return start(ledger, words, **engine).wait()
        disk = Disk(ledger.data)
        disk.fill(left)
        try:
            return start(ledger, words, **engine).wait()
        finally:
            disk.empty()

    return Fault(f"disk full, {left // 1024} kB left", run)


def read_only_disk() -> Fault:
    """Nothing may be written."""

    def run(ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]) -> int:
        if not is_own_disk(ledger.data):
            return start(ledger, words, **engine).wait()
        disk = Disk(ledger.data)
        disk.read_only(really=True)
        try:
            return start(ledger, words, **engine).wait()
        finally:
            disk.read_only(really=False)

    return Fault("read-only disk", run)


def locked_state(seconds: float) -> Fault:
    """Somebody keeps the state locked, from soon after the start."""

    def run(ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]) -> int:
        victim = start(ledger, words, **engine)
        time.sleep(3)
        with closing(sqlite3.connect(ledger.data / "state.db", timeout=60)) as state:
            state.isolation_level = None
            state.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            state.execute("ROLLBACK")
        return victim.wait()

    return Fault(f"state locked for {seconds:g} s", run)


def clock_back(step: str, hours: float) -> Fault:
    """A process dies at a step; then the clock is found to have been hours ahead."""

    def run(ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]) -> int:
        ledger.move_clock(hours * HOUR)
        AtStep(step)(ledger, words, engine)
        ledger.move_clock(-hours * HOUR)
        ledger.pass_lease()
        return start(ledger, words, **engine).wait()

    return Fault(f"clock {hours:g} h back", run)


def slow_effects(seconds: float, lease: float) -> Fault:
    """Every effect takes longer than the lease, and two processes want the same."""

    def run(ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]) -> int:
        slow = {"FAULT_SLOW": str(seconds), "BACKFILL_LEASE_SECONDS": str(lease), **engine}
        process = start(ledger, words, **slow)
        other = start(ledger, words, **slow)
        return process.wait() + other.wait()

    return Fault(f"effects {seconds:g} s slow under a lease of {lease:g} s", run)


def storm_case(bench: Bench, count: int) -> Outcome:
    """Two JVMs commit to one table in a tight loop."""
    began, folder = time.monotonic(), bench.folder / "storm"
    shutil.rmtree(folder, ignore_errors=True)
    outcome = Outcome(f"storm of two times {count} commits", violations=list(storm(folder, count)))
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def short_life(bench: Bench) -> Outcome:
    """Live once through everything, hit where it matters most."""
    hits: tuple[tuple[Hit, ...], ...] = (
        (
            AtStep("open_batch:1:within"),
            AtStep("create_table:1:after"),
            full_disk(100_000),
            AtStep("set_cells:2:after"),
            WhileWriting("session"),
            AtStep("record:1:within"),
        ),
        (
            AtStep("open_workspace:1:after"),
            Asleep("set_cells:1:before"),
            AtStep("record:1:before"),
            AtStep("set_plan_status:1:before"),
        ),
        (
            AtStep("begin_promotion:1:after"),
            AtStep("note_promotion:1:before"),
            AtStep("copy_cells:2:after"),
            locked_state(5),
            AtStep("publish:1:within"),
            AtStep("publish:1:after"),
        ),
        (
            JvmAtStep("restore_cells:1:before"),
            AtStep("restore_cells:2:after"),
            AtStep("publish:1:before"),
        ),
        (
            AtStep("mark_collecting:1:after"),
            AtStep("delete_table:1:before"),
            AtStep("delete_files:1:before"),
            AtStep("exchange_files:1:before"),
            AtStep("exchange_files:1:after"),
            AtStep("follow_head:1:within"),
        ),
    )
    return faulty_life(bench, hits, "short")


def life_of_faults(bench: Bench) -> Outcome:
    """Live once through everything, and run into every fault that kills nobody on the way."""
    hits: tuple[tuple[Hit, ...], ...] = (
        (
            full_disk(0),
            read_only_disk(),
            clock_back("set_cells:1:before", 3),
            locked_state(45),
        ),
        (full_disk(200_000), read_only_disk(), locked_state(10)),
        (full_disk(50_000), read_only_disk(), clock_back("publish:1:before", 3)),
        (full_disk(0), clock_back("restore_cells:1:before", 3)),
        (read_only_disk(), full_disk(0)),
    )
    return faulty_life(bench, hits, "of faults")


def slow_life(bench: Bench) -> Outcome:
    """Two of each command at once, every effect slower than the lease."""
    return faulty_life(bench, tuple((slow_effects(2, 3),) for _ in range(5)), "slow")


def faulty_life(bench: Bench, hits: tuple[tuple[Hit, ...], ...], name: str) -> Outcome:
    """Live on a disk of its own, or without one where none can be mounted."""
    try:
        outcome = bench.life(iter(hits), name, around=own_disk)
    except NoDiskError as error:
        outcome = bench.life(iter(hits), name)
        outcome.hits.append(f"LEFT OUT: disks, for none can be mounted: {error}")
    faults = [hit for phase in hits for hit in phase if isinstance(hit, Fault)]
    outcome.violations += [text for fault in faults for text in fault.wrong]
    return outcome
