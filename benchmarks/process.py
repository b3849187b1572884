"""A measured process: how long a command took, what it used, and when it said what."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

_EVERY = 0.25
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class CommandFailedError(RuntimeError):
    """A measured command ended with an exit code that means a failure."""

    def __init__(self, command: Sequence[str], code: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {code}; its last lines:\n{said[-3000:]}")


@dataclass(slots=True)
class Measured:
    """What a command took.

    Attributes:
        began: unix time of its start.
        wall: seconds until it ended.
        cpu: CPU seconds of it and of the JVM that it started, to a quarter of a second.
        peak_mb: the largest sum of resident memory over its processes (Python and JVM).
        processes: how many processes the whole machine started meanwhile.
        jvm: whether a JVM was among its own processes.
        output: its stdout.
        lines: its stderr, each line with the seconds after its start.
    """

    began: float
    wall: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    processes: int = 0
    jvm: bool = False
    output: str = ""
    lines: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def said(self, start: str) -> float:
        """Give when it first wrote a line that starts so; infinity for never."""
        return next((at for at, line in self.lines if line.startswith(start)), float("inf"))


def measured(
    command: Sequence[str], env: Mapping[str, str], *, ends: Container[int] = (0,)
) -> Measured:
    """Run a command to its end in a session of its own, and measure it.

    Args:
        command: its words.
        env: what is set for it beside what is set here.
        ends: the exit codes that mean that it went well.

    Raises:
        CommandFailedError: it failed.
    """
    before, result = _started(), Measured(began=time.time())  # noqa: TID251 - compared with records
    clock = time.monotonic()
    process = subprocess.Popen(  # noqa: S603 - our own command
        list(command),
        # Bytecode as an installed package has it: who sets this for editing would measure the compiler.
        env={**os.environ, **env, "PYTHONDONTWRITEBYTECODE": ""},  # noqa: TID251 - passed on
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    used: dict[int, float] = {}
    helpers = [
        threading.Thread(target=_read_out, args=(process, result)),
        threading.Thread(target=_read_err, args=(process, result, clock)),
        threading.Thread(target=_watch, args=(process, result, used)),
    ]
    for helper in helpers:
        helper.start()
    code = process.wait()
    result.wall = time.monotonic() - clock
    for helper in helpers:
        helper.join()
    result.cpu, result.processes = sum(used.values()), _started() - before
    if code not in ends:
        said = "\n".join(line for _, line in result.lines)
        raise CommandFailedError(command, code, f"{result.output}\n{said}")
    return result


def _read_out(process: subprocess.Popen[str], result: Measured) -> None:
    result.output = process.stdout.read() if process.stdout else ""


def _read_err(process: subprocess.Popen[str], result: Measured, clock: float) -> None:
    for line in process.stderr or ():
        result.lines.append((time.monotonic() - clock, line.rstrip()))


def _watch(process: subprocess.Popen[str], result: Measured, used: dict[int, float]) -> None:
    while process.poll() is None:
        resident = 0.0
        for child in processes_of(process.pid):
            used[child.pid] = max(used.get(child.pid, 0.0), child.cpu)
            resident += child.resident_mb
            result.jvm = result.jvm or child.jvm
        result.peak_mb = max(result.peak_mb, resident)
        time.sleep(_EVERY)


@dataclass(frozen=True, slots=True)
class Used:
    """What a process has used so far.

    Attributes:
        pid: the process.
        parent: the one that started it.
        cpu: CPU seconds; of a JVM, with those of short processes that it has started and ended.
        resident_mb: its resident memory.
        jvm: whether it is a JVM.
    """

    pid: int
    parent: int
    cpu: float
    resident_mb: float
    jvm: bool


def processes_of(leader: int) -> list[Used]:
    """Look at every process of a session."""
    found: list[Used] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            head, _, rest = (folder / "stat").read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        parts = rest.split()
        if int(parts[3]) == leader:
            own, ended = int(parts[11]) + int(parts[12]), int(parts[13]) + int(parts[14])
            jvm = head.partition("(")[2] == "java"
            ticks = own + (ended if jvm else 0)
            resident = int(parts[21]) * _PAGE / 1e6
            found.append(Used(int(folder.name), int(parts[1]), ticks / _TICKS, resident, jvm))
    return found


def _started() -> int:
    """Read how many processes this machine has started since it booted."""
    lines = Path("/proc/stat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("processes"))
