"""What the processes of some sessions use while something happens: CPU, memory, and whose it is."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.engine.project.heartbeat import repeatedly
from benchmarks.process import processes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EVERY = 0.25


@dataclass(slots=True)
class Used:
    """What the processes have used, since they were looked at first.

    Attributes:
        began: unix time of that look.
        before: CPU seconds that each process had used by then.
        cpu: CPU seconds of each process.
        parents: who started each.
        peak_mb: the largest resident memory of all of them together.
    """

    began: float
    before: dict[int, float] = field(default_factory=dict[int, float])
    cpu: dict[int, float] = field(default_factory=dict[int, float])
    parents: dict[int, int] = field(default_factory=dict[int, int])
    peak_mb: float = 0.0

    @property
    def total(self) -> float:
        """CPU seconds altogether."""
        return sum(self.cpu.values()) - sum(self.before.values())

    def of(self, pid: int) -> float:
        """CPU seconds of a process and those below it."""
        below = [child for child, parent in self.parents.items() if parent == pid and child != pid]
        return self.cpu.get(pid, 0.0) + sum(map(self.of, below))

    def since(self, pid: int) -> float:
        """CPU seconds of one process that ran before, since the first look."""
        return self.cpu.get(pid, 0.0) - self.before.get(pid, 0.0)


@contextmanager
def watching(leaders: Sequence[int]) -> Iterator[Used]:
    """Look at every process of these sessions, as long as the context is open."""
    used = Used(began=time.time())  # noqa: TID251 - beside records

    def look() -> None:
        resident = 0.0
        for leader in leaders:
            for process in processes_of(leader):
                used.cpu[process.pid] = max(used.cpu.get(process.pid, 0.0), process.cpu)
                used.parents[process.pid] = process.parent
                resident += process.resident_mb
        used.peak_mb = max(used.peak_mb, resident)

    look()
    used.before = dict(used.cpu)
    with repeatedly(look, every=_EVERY, name="a look at the processes"):
        yield used


def leader_of(word: str) -> int:
    """Find the process that leads a session and was started with this word.

    Raises:
        ProcessLookupError: there is none.
    """
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            said = (folder / "cmdline").read_text().split("\0")
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except OSError:  # it has ended meanwhile
            continue
        if word in said and session == int(folder.name):
            return session
    raise ProcessLookupError(word)
