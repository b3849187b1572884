"""Start a command as a victim in a session of its own, wait for it, and end it with all below it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets_tests.faults.nursery import Forked, Nursery
from backfill_assets_tests.faults.victim import children

if TYPE_CHECKING:
    from backfill_assets_tests.faults.ledger import Ledger

LONGEST = 900.0
"""Seconds after which a command hangs: a violation of its own."""


class HangsError(AssertionError):
    """A command has not ended."""


@dataclass
class Victim:
    """A command that runs in a session of its own.

    Attributes:
        process: of Python.
        log: what it said.
    """

    process: subprocess.Popen[bytes] | Forked
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def was_killed(self) -> bool:
        return self.process.poll() == -signal.SIGKILL

    def wait(self, seconds: float = LONGEST) -> int:
        """Give its exit code.

        Raises:
            HangsError: it does not end; it is killed then.
        """
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise HangsError(f"after {seconds:.0f} s not ended:\n{self.said[-2000:]}") from error

    def is_asleep(self) -> bool:
        """Whether it was stopped by a signal."""
        with suppress(OSError):  # it may end at any time
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
            return stat.rpartition(")")[2].split()[0] == "T"
        return False

    def falls_asleep(self, seconds: float = LONGEST) -> bool:
        """Wait until it sleeps; False when it ended before."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.is_asleep():
                return True
            time.sleep(0.02)
        return False

    def lives_for(self, seconds: float) -> bool:
        """Let it work for so long; whether it is still at it."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all below it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Kill it and all below it at once."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def kill_jvm(self) -> bool:
        """Kill the java below it alone; False when there is none."""
        found = children(self.process.pid)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)


@cache
def _nursery() -> Nursery:
    return Nursery()


def start(ledger: Ledger, words: tuple[str, ...], **variables: str) -> Victim:
    """Start a command of a ledger.

    One whose Spark is elsewhere is forked by the nursery; any other one is started from nothing, as a
    person would.
    """
    log = ledger.folder / "said.log"
    given = {**os.environ, **ledger.variables, **variables}
    with log.open("ab") as out:
        out.write(f"\n$ backfill {' '.join(words)}\n".encode())
    if {"PYSPARK_GATEWAY_PORT", "BACKFILL_SPARK_REMOTE"} & set(variables):
        return Victim(_nursery().fork(words, given, ledger.folder, log), log)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "backfill_assets_tests.faults.victim", *words],
            cwd=ledger.folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Victim(process, log)
