"""`python -m backfill_assets_tests.faults.victim VERB ...`: the command, in a process that may die.

Nothing of the product knows of it. The variables say what happens:

    FAULT_STEP    record:2:before   at which effect (see `effects`); none: it just runs
    FAULT_AT      17                or at the 17th moment, whatever that is
    FAULT_HOW     kill | jvm | stop  die, let its JVM die, or fall asleep until it is woken
    FAULT_SLOW    seconds that every effect takes longer
    FAULT_TRACE   a file that every moment is written to
    FAULT_CLOCK   a file with the seconds by which the clock is ahead
    PYSPARK_GATEWAY_PORT             a JVM to attach to; none: one of its own
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.cli import project
from backfill_assets.warehouse.spark import shared_session
from backfill_assets.warehouse.spark.shared_session import SharedSession
from backfill_assets_tests.faults.effects import Effects
from backfill_assets_tests.faults.engine import attach

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    """Prepare the process, and be the command."""
    _take_clock()
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        shared_session.start_session = _attached
        SharedSession.stop = _left_running
    Effects(_met).watch()
    from backfill_assets.cli.app import main as command  # noqa: PLC0415 - it binds what it imports

    command()


def _attached(settings: object) -> SparkSession:
    return attach()


def _left_running(self: SharedSession) -> None:
    """It is not ours to stop."""


def _take_clock() -> None:
    path = os.environ.get("FAULT_CLOCK")
    if path is None:
        return

    def now() -> datetime:
        ahead = float(Path(path).read_text()) if Path(path).exists() else 0.0
        return datetime.now(UTC) + timedelta(seconds=ahead)

    project.now = now


_moments = itertools.count(1)


def _met(name: str, number: int, when: str) -> None:
    step, moment = f"{name}:{number}:{when}", next(_moments)
    trace = os.environ.get("FAULT_TRACE")
    if when == "before":
        time.sleep(float(os.environ.get("FAULT_SLOW", "0")))
    if trace:
        with Path(trace).open("a") as out:
            out.write(f"{step}\n")
    if step == os.environ.get("FAULT_STEP") or str(moment) == os.environ.get("FAULT_AT"):
        if trace:
            Path(f"{trace}.hit").write_text(step)
        _strike(os.environ.get("FAULT_HOW", "kill"))


def _strike(how: str) -> None:
    if how == "jvm":
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)


def children(pid: int) -> list[int]:
    """The java processes below one."""
    found = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in found.splitlines()]
    below: set[int] = {pid}
    for _ in rows:
        below |= {int(child) for child, parent, _ in rows if int(parent) in below}
    return [int(child) for child, _, name in rows if int(child) in below and "java" in name]


if __name__ == "__main__":
    sys.exit(main())
