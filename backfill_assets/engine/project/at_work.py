"""Which step is at work: told by the steps themselves, to those who show it and for estimates.

One value for every verb and run. Steps may begin inside of others, from any thread; the one that began
last is shown, and its are the seconds that pass.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Phase(StrEnum):
    """The kinds of steps, as people read them."""

    LOOKING = "looking at sources"
    PLANNING = "planning"
    STARTING = "starting Spark"
    BUILDING = "building"
    CHECKING = "checks"
    COMPARING = "comparing"
    PUBLISHING = "publishing"
    RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class WorkStep:
    """A step at work.

    Attributes:
        phase: its kind.
        subject: what it is about: a model, a source; empty for all of it.
        number: which one of several it is at, from 1; 0 before the first.
        of: how many there are; 0 where that is not known.
        began: seconds of a monotonic clock.
    """

    phase: Phase
    subject: str = ""
    number: int = 0
    of: int = 0
    began: float = 0.0

    @property
    def words(self) -> str:
        """Describe the step, such as ``checks: web.sessions, 2 of 3``."""
        what = "batch " if self.phase is Phase.BUILDING else ""
        counted = f"{what}{self.number} of {self.of}" if self.number and self.of else ""
        details = ", ".join(part for part in (self.subject, counted) if part)
        return f"{self.phase}: {details}" if details else str(self.phase)


class Telling:
    """A step that is at work, told how far it is."""

    def __init__(self, step: WorkStep, tell: Callable[[], None]) -> None:
        self.step, self._tell = step, tell

    def tell(self, subject: str, number: int, of: int) -> None:
        """Say which one is at work, what it is about, and how many there are by now."""
        self.step = replace(self.step, subject=subject, number=number, of=of)
        self._tell()

    def next(self, subject: str | None = None) -> None:
        """Say that the next one begins: of several subjects, or of several batches of one."""
        step, number = self.step, self.step.number + 1
        new_subject = step.subject if subject is None else subject
        self.step = replace(step, subject=new_subject, number=min(number, step.of))
        self._tell()


class AtWork:
    """The steps at work; each reports here when it begins, goes on and ends."""

    def __init__(
        self,
        listener: Callable[[WorkStep | None], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with no step at work.

        Args:
            listener: called at each change with the step that is at work, or None where none is any
                more; never by two threads at once.
            clock: gives seconds that only grow.
        """
        self._listener, self._clock = listener, clock
        self._lock = threading.RLock()
        self._open: list[Telling] = []
        self._seconds: dict[Phase, float] = {}
        self._since = 0.0

    @contextmanager
    def at(self, phase: Phase, subject: str = "", *, of: int = 0) -> Iterator[Telling]:
        """Be at a step until the block ends.

        Args:
            phase: its kind.
            subject: what it is about.
            of: how many it has, each of which is told by `Telling.next`.
        """
        step = Telling(WorkStep(phase, subject, of=of, began=self._clock()), self._told)
        try:
            with self._lock:
                self._charge()
                self._open.append(step)
                if not of:
                    self._told()
            yield step
        finally:  # also of an interrupt that came while it was told
            with self._lock:
                self._charge()
                self._open = [open_step for open_step in self._open if open_step is not step]
                self._told()

    def seconds(self, since: Mapping[str, float] | None = None) -> dict[str, float]:
        """Give how long each kind of step was at work, in seconds; what began inside counts for itself.

        Args:
            since: what this has given before; only what came after it is counted.
        """
        with self._lock:
            self._charge()
            before = since or {}
            seconds = {
                phase.value: took - before.get(phase.value, 0.0)
                for phase, took in self._seconds.items()
            }
        return {name: took for name, took in seconds.items() if took > 0}

    def _charge(self) -> None:
        """Give the seconds since the last change to the step that was at work."""
        now = self._clock()
        if self._open:
            phase = self._open[-1].step.phase
            self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._since
        self._since = now

    def _told(self) -> None:
        with self._lock:
            self._listener(self._open[-1].step if self._open else None)
