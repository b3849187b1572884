"""How a command is hit: at the n-th moment of its effects, at an instant, or while it sleeps.

A hit starts the command and gives a word of what was hit, or None when the command had ended before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from os import walk
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import TYPE_CHECKING, Protocol

from backfill_assets_tests.faults.processes import start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets_tests.faults.ledger import Ledger
    from backfill_assets_tests.faults.processes import Victim

_PATIENCE = 120.0


class Hit(Protocol):
    """Starts a command and hits it."""

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        """Say what was hit; None when the command was quicker."""
        ...


@dataclass(frozen=True)
class AtMoment:
    """Killed at the n-th moment of its effects, attached to the warm JVM, which goes on."""

    moment: int

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        found = _struck(ledger, words, engine, FAULT_AT=str(self.moment))
        return found and f"kill at {found}"


@dataclass(frozen=True)
class AtStep:
    """Killed at a named effect, `record:1:before`."""

    step: str

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        found = _struck(ledger, words, engine, FAULT_STEP=self.step)
        return found and f"kill at {found}"


@dataclass(frozen=True)
class JvmAtStep:
    """With a JVM of its own, which is killed at a named effect while Python lives on."""

    step: str

    def __call__(
        self,
        ledger: Ledger,
        words: tuple[str, ...],
        engine: Mapping[str, str],  # noqa: ARG002 - it has its own
    ) -> str | None:
        trace = _trace(ledger)
        start(ledger, words, FAULT_STEP=self.step, FAULT_HOW="jvm", FAULT_TRACE=str(trace)).wait()
        found = _hit(trace)
        return found and f"kill of the JVM at {found}"


@dataclass(frozen=True)
class Asleep:
    """Put to sleep at a named effect; another does its work; then it wakes, and must do no harm."""

    step: str

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        trace = _trace(ledger)
        victim = start(
            ledger,
            words,
            FAULT_STEP=self.step,
            FAULT_HOW="stop",
            FAULT_TRACE=str(trace),
            **engine,
        )
        if not victim.falls_asleep():
            return None
        ledger.pass_lease()
        start(ledger, words, **engine).wait()
        victim.signal(SIGCONT)
        victim.wait()
        return f"sleep at {_hit(trace)}"


@dataclass(frozen=True)
class WhileWriting:
    """With a JVM of its own: hit as soon as data files lie there that no commit names yet.

    Attributes:
        how: `session` kills all of it, `jvm` the JVM alone, `sleep` stops all and wakes it after
            a takeover.
        files: how many new ones it waits for.
    """

    how: str
    files: int = 1

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        before = _files(ledger)
        victim = start(ledger, words)
        deadline = time.monotonic() + _PATIENCE
        while victim.process.poll() is None and time.monotonic() < deadline:
            if len(_files(ledger) - before) >= self.files:
                return _struck_now(ledger, words, engine, victim, self.how, "while writing files")
            time.sleep(0.005)
        victim.wait()
        return None


@dataclass(frozen=True)
class AtInstant:
    """With a JVM of its own: hit so many seconds after its start, wherever it is."""

    how: str
    seconds: float

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        victim = start(ledger, words)
        deadline = time.monotonic() + self.seconds
        while victim.process.poll() is None:
            if time.monotonic() >= deadline:
                when = f"after {self.seconds:.1f} s"
                return _struck_now(ledger, words, engine, victim, self.how, when)
            time.sleep(0.01)
        return None


@dataclass(frozen=True)
class AtAnyTime:
    """Attached to the warm JVM, killed so many seconds after its start, wherever it is."""

    seconds: float

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        victim = start(ledger, words, **engine)
        if not victim.lives_for(self.seconds):
            return None
        victim.kill()
        return f"kill of the client after {self.seconds:.1f} s"


def _struck_now(
    ledger: Ledger,
    words: tuple[str, ...],
    engine: Mapping[str, str],
    victim: Victim,
    how: str,
    when: str,
) -> str | None:
    if how == "session":
        victim.kill()
        return f"kill of Python and JVM {when}"
    if how == "jvm":
        if not victim.kill_jvm():
            victim.kill()
            return f"kill before its JVM {when}"
        victim.wait()
        return f"kill of the JVM {when}"
    victim.signal(SIGSTOP)
    ledger.pass_lease()
    start(ledger, words, **engine).wait()
    victim.signal(SIGCONT)
    victim.wait()
    return f"sleep of Python and JVM {when}"


def _struck(
    ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str], **variables: str
) -> str | None:
    trace = _trace(ledger)
    victim = start(ledger, words, FAULT_TRACE=str(trace), **variables, **engine)
    victim.wait()
    return _hit(trace) if victim.was_killed else None


def _trace(ledger: Ledger) -> Path:
    trace = ledger.folder / "trace"
    trace.with_name("trace.hit").unlink(missing_ok=True)
    return trace


def _hit(trace: Path) -> str | None:
    hit = trace.with_name("trace.hit")
    return hit.read_text() if hit.exists() else None


def _files(ledger: Ledger) -> set[Path]:
    below = walk(ledger.data / "tables")  # it passes over folders that Spark removes meanwhile
    return {
        Path(folder, name)
        for folder, _, names in below
        for name in names
        if name.endswith(".parquet") and "/b-" in folder
    }
