"""Show the current step and the progress of cells: bars on a terminal, else lines."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.spinner import Spinner
from rich.text import Text

from backfill_assets.cli.output import err, say
from backfill_assets.engine.project.at_work import AtWork, Phase
from backfill_assets.engine.project.events import (
    Committed,
    Failed,
    LeftStale,
    TryingAgain,
    Waiting,
    event_line,
)
from backfill_assets.engine.project.heartbeat import repeatedly

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import FrameType

    from rich.console import RenderableType

    from backfill_assets.engine.project.at_work import WorkStep
    from backfill_assets.engine.project.events import Event, Listener
    from backfill_assets.models.graph import Graph

HEARTBEAT = 30.0
"""Seconds between two lines that say what a verb is at, where its bars are not shown."""
LASTING = 1.0
"""Seconds after which a step is told there that usually takes an instant."""
_INSTANT = (Phase.LOOKING, Phase.PLANNING)
_REFRESHES = 4


@dataclass
class Tally:
    """The progress so far.

    Attributes:
        todo: per model, how many cells are missing.
        done: per model, how many of them are filled.
        began: seconds of a monotonic clock.
    """

    todo: Mapping[str, int]
    done: dict[str, int] = field(default_factory=dict[str, int])
    began: float = field(default_factory=time.monotonic)

    def count(self, event: Event) -> None:
        """Take an event into account."""
        if isinstance(event, Committed):
            self.done[event.model] = self.done.get(event.model, 0) + event.filled

    def words(self, now: float) -> str:
        """Write how many cells are done; empty if no cells are counted."""
        seconds = now - self.began
        done, all_ = sum(self.done.values()), sum(self.todo.values())
        if not all_:
            return ""
        estimate = (
            f", about {_clock(seconds * (all_ - done) / done)} left" if 0 < done < all_ else ""
        )
        return f"{done:,} of {all_:,} cells in all{estimate}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class Lines:
    """Progress without a terminal: a line for each step, and a regular one on the current step.

    Each new phase is shown at once, except phases that usually take an instant; these, and other items
    of the same phase, are shown once they last.
    """

    def __init__(
        self,
        heartbeat: float = HEARTBEAT,
        lasting: float = LASTING,
        said: set[str] | None = None,
    ) -> None:
        """Write nothing until a step begins.

        Args:
            heartbeat: seconds between two lines on a step that goes on.
            lasting: seconds after which a step is shown that was not shown at once.
            said: the lines that the same verb has shown before; none is shown twice.
        """
        self._heartbeat, self._lasting = heartbeat, lasting
        self._at: WorkStep | None = None
        self._tally = Tally({})
        self._said = set[str]() if said is None else said
        self._phase: Phase | None = None
        self._last = 0.0
        self._beats: AbstractContextManager[None] | None = None

    def tell(self, step: WorkStep | None, tally: Tally) -> None:
        """Show the current step, unless it was shown before."""
        self._at, self._tally = step, tally
        if step is None:
            self.close()
            return
        if step.phase is not self._phase and step.phase not in _INSTANT:
            self._say(step)
        self._phase = step.phase
        if self._beats is None:
            self._beats = repeatedly(self._beat, every=self._lasting, name="progress")
            self._beats.__enter__()

    def _say(self, step: WorkStep) -> None:
        if step.words not in self._said:
            self._said.add(step.words)
            self._last = time.monotonic()
            say(step.words, to=err)

    def _beat(self) -> None:
        step, now = self._at, time.monotonic()
        if step is None:
            return
        if step.words not in self._said:
            self._say(step)
        elif now - self._last >= self._heartbeat:
            self._last = now
            say(beat_line(step, self._tally, now), to=err)

    def close(self) -> None:
        """Write nothing more."""
        beats, self._beats = self._beats, None
        if beats is not None:
            beats.__exit__(None, None, None)


def beat_line(step: WorkStep, tally: Tally, now: float) -> str:
    """Write how long a step has run, and how many cells of all are done.

    Args:
        step: at work.
        tally: what is done so far.
        now: seconds of the clock that told when they began.
    """
    parts = (f"at work for {_clock(now - step.began)}: {step.words}", tally.words(now))
    return "; ".join(part for part in parts if part)


class Bars:
    """Progress on a terminal: a line with the current step, over a bar for each model with cells to fill."""

    def __init__(self) -> None:
        self._at: WorkStep | None = None
        self._tally = Tally({})
        self._live: Live | None = None
        self._spinner = Spinner("line")
        self._bars, self._tasks = _no_bars(), dict[str, TaskID]()

    def tell(self, step: WorkStep | None, tally: Tally) -> None:
        """Show the current step; the line disappears after the last one."""
        if tally is not self._tally:
            self._bars = _no_bars()
            self._tasks = {
                name: self._bars.add_task(name, total=of) for name, of in tally.todo.items() if of
            }
        self._at, self._tally = step, tally
        if step is None:
            self.close()
        elif self._live is None:
            self._live = Live(
                console=err,
                transient=True,
                refresh_per_second=_REFRESHES,
                get_renderable=self._drawn,
                redirect_stdout=False,  # JSON goes there alone
            )
            self._live.start()

    def _drawn(self) -> RenderableType:
        step = self._at
        if step is None:
            return Text()
        for name, task in self._tasks.items():
            self._bars.update(task, completed=self._tally.done.get(name, 0))
        lasted = _clock(time.monotonic() - step.began)
        self._spinner.update(
            text=Text(f"{step.words}  {lasted}", no_wrap=True, overflow="ellipsis")
        )
        return Group(self._spinner, self._bars.get_renderable())

    def close(self) -> None:
        """Leave the terminal as it was."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


def _no_bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=14),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        auto_refresh=False,
    )


class Shown:
    """The progress of any verb, shown on stderr."""

    def __init__(self) -> None:
        self._tally = Tally({})
        self._said: set[str] | None = None
        self._face: Lines | Bars | None = None

    def told(self, step: WorkStep | None) -> None:
        """Get the display; it is chosen anew at each first step, for a terminal or for a pipe."""
        if self._face is None:
            drawn = err.is_terminal and not err.is_dumb_terminal
            self._face = Bars() if drawn else Lines(HEARTBEAT, LASTING, self._said)
        self._face.tell(step, self._tally)
        if step is None:
            self._face = None

    @contextmanager
    def counting(self, tally: Tally) -> Iterator[None]:
        """Show beside the steps how many cells are done, and no line of a step twice."""
        self._tally, self._said = tally, set()
        try:
            yield
        finally:
            self._tally, self._said = Tally({}), None


_SHOWN = Shown()
AT_WORK = AtWork(_SHOWN.told)
"""What the steps of every verb tell themselves to; shown on stderr."""


@contextmanager
def shown(graph: Graph, todo: Mapping[str, int]) -> Iterator[Listener]:
    """Show events of cells on stderr, and count the cells that are done.

    Args:
        graph: for the names of cells.
        todo: per model, how many cells are missing.
    """
    tally = Tally(todo)
    with _interrupts_announced(), _SHOWN.counting(tally):

        def listen(event: Event) -> None:
            tally.count(event)
            line = event_line(graph, event)
            if line is not None:
                say(line, to=err, style=_STYLES.get(type(event)), indent=2)

        yield listen


@contextmanager
def _interrupts_announced() -> Iterator[None]:
    """Report Ctrl-C at once, since the batches in flight are still finished."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: FrameType | None) -> None:
        del number, frame
        say("stopping after the batches in flight; once more cancels them", to=err)
        signal.signal(signal.SIGINT, before)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_STYLES: dict[type, str] = {
    Failed: "red",
    LeftStale: "yellow",
    TryingAgain: "yellow",
    Waiting: "yellow",
}
