"""Show a run's events while they happen: a bar on a terminal, a line each in a pipe."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from backfill_assets.cli.output import err
from backfill_assets.execution.events import (
    Committed,
    Failed,
    NeedsPlan,
    Skipped,
    Started,
    Waiting,
)
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.execution.events import Event, Listener
    from backfill_assets.models.graph import Graph


@contextmanager
def shown(graph: Graph, todo: Mapping[str, int]) -> Iterator[Listener]:
    """Show progress on stderr.

    Args:
        graph: for the names of cells.
        todo: per model, how many cells are missing.
    """
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with bars:
        tasks = {
            name: bars.add_task(name, total=count) for name, count in todo.items() if count
        }

        def listen(event: Event) -> None:
            line = _line(graph, event)
            if line is not None:
                bars.console.print(line)
            if isinstance(event, Committed) and event.model in tasks:
                bars.advance(tasks[event.model], len(event.contents))

        yield listen


def _line(graph: Graph, event: Event) -> str | None:
    cadence = graph.model(event.model).cadence

    def named(cells: IntervalSet) -> str:
        return ranges_text(cadence, cells)

    match event:
        case Started() | Skipped():
            return None
        case Committed():
            cells = named(IntervalSet.of([event.interval]))
            passed = sum(result.passed for result in event.audits)
            seconds = event.timing.total
            return (
                f"✔ {event.model} {cells}: {event.rows:,} rows, audits {passed}/"
                f"{len(event.audits)}, {seconds:.1f} s"
            )
        case Failed():
            return f"✗ {event.model} {named(IntervalSet.of([event.interval]))}: {event.error}"
        case Waiting():
            return f"… {event.model} {named(event.cells)}: waits for {event.upstream}"
        case NeedsPlan():
            return (
                f"! {event.model} {named(event.cells)}: {event.upstream} changed since; published "
                "history changes by a plan only"
            )
        case _:
            assert_never(event)
