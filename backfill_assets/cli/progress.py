"""Show a run's events while they happen: bars on a terminal, lines and a heartbeat in a pipe."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from backfill_assets.cli.output import err, say
from backfill_assets.execution.events import (
    Committed,
    Delayed,
    Failed,
    NeedsPlan,
    Noted,
    Skipped,
    Started,
    TryingAgain,
    Waiting,
)
from backfill_assets.execution.meanwhile import meanwhile
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from backfill_assets.execution.events import Event, Listener
    from backfill_assets.models.graph import Graph

HEARTBEAT = 30.0
"""Seconds between two lines that say what a run is at, where nobody sees its bars."""


@contextmanager
def shown(
    graph: Graph, todo: Mapping[str, int], step: str = "", *, heartbeat: float = HEARTBEAT
) -> Iterator[Listener]:
    """Show progress on stderr.

    Args:
        graph: for the names of cells.
        todo: per model, how many cells are missing.
        step: what the verb does until a batch tells of itself, in words.
        heartbeat: seconds between two lines where there is no terminal.
    """
    tally = Tally(todo, step)
    with _interrupts_announced(), _bars(tally) if err.is_terminal else _beats(tally, heartbeat):

        def listen(event: Event) -> None:
            tally.count(event)
            line = event_line(graph, event)
            if line is not None:
                say(line, to=err, style=_STYLES.get(type(event)), indent=2)

        yield listen


@dataclass
class Tally:
    """What is done so far.

    Attributes:
        todo: per model, how many cells are missing.
        step: what is done until a batch tells of itself, in words.
        done: per model, how many of them are filled.
        at: the model at work.
    """

    todo: Mapping[str, int]
    step: str = ""
    done: dict[str, int] = field(default_factory=dict[str, int])
    at: str = ""

    def count(self, event: Event) -> None:
        """Take an event into account."""
        self.at = event.model
        if isinstance(event, Committed):
            self.done[event.model] = self.done.get(event.model, 0) + len(event.contents)

    def line(self, seconds: float) -> str:
        """Say it in one line."""
        done, all_ = sum(self.done.values()), sum(self.todo.values())
        said = f"at work for {_clock(seconds)}"
        if not all_:
            at = self.at or self.step
            return f"{said}: {at}" if at else said
        own = f"{self.done.get(self.at, 0):,} of {self.todo.get(self.at, 0):,}"
        at = f"{self.at} {own} cells; " if self.at else f"{self.step}; " if self.step else ""
        left = f", about {_clock(seconds * (all_ - done) / done)} left" if 0 < done < all_ else ""
        return f"{said}: {at}{done:,} of {all_:,} cells in all{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


@contextmanager
def _bars(tally: Tally) -> Iterator[None]:
    """Draw one bar for each model, moved on twice a second by what is counted."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=14),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, auto_refresh=False) as bars:
        tasks = {
            name: bars.add_task(name, total=count) for name, count in tally.todo.items() if count
        }

        def draw() -> None:
            for name, task in tasks.items():
                bars.update(task, completed=tally.done.get(name, 0))
            bars.refresh()

        with meanwhile(draw, every=0.5, name="progress"):
            yield
        draw()


@contextmanager
def _beats(tally: Tally, seconds: float) -> Iterator[None]:
    began = time.monotonic()

    def beat() -> None:
        say(tally.line(time.monotonic() - began), to=err)

    with meanwhile(beat, every=seconds, name="progress"):
        yield


@contextmanager
def _interrupts_announced() -> Iterator[None]:
    """Say at once that Ctrl-C was heard: the batches in flight are still brought to their end."""
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
    NeedsPlan: "yellow",
    TryingAgain: "yellow",
    Waiting: "yellow",
}


def event_line(graph: Graph, event: Event) -> str | None:
    """Say what happened in one line; None for what need not be said."""
    if isinstance(event, Started | Skipped):
        return None
    if isinstance(event, Noted):
        return event.note
    word, cells, said = _told(event)
    known = graph.models.get(event.model)  # an environment may run one that is not declared now
    named = ranges_text(known.cadence, cells) if known else str(cells)
    return f"{word:<8}{event.model} {named}: {said}"


def _told(
    event: Delayed | TryingAgain | Committed | Failed | Waiting | NeedsPlan,
) -> tuple[str, IntervalSet, str]:
    """Give a word for what happened, the cells that it happened to, and the rest of the line."""
    if isinstance(event, Waiting | NeedsPlan):
        cells = event.cells
    else:
        cells = IntervalSet.of([event.interval])
    match event:
        case Delayed():
            told = "waits", f"for {event.why}"
        case TryingAgain():
            told = "again", event.words
        case Committed():
            passed = sum(result.passed for result in event.audits)
            audits = f"audits {passed}/{len(event.audits)}"
            told = "done", f"{event.rows:,} rows, {audits}, {event.timing.total:.1f} s"
        case Failed():
            told = "FAILED", event.error
        case Waiting():
            told = "waits", f"for {event.upstream}"
        case NeedsPlan():
            told = "late" if event.automatic else "stale", event.words
        case _:
            assert_never(event)
    return told[0], cells, told[1]
