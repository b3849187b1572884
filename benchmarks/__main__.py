"""`python -m benchmarks`: 540 days of campaign performance, by us and without us, on this machine.

Every scenario is a process of its own, so each pays for its own start; `work` leaves that out. Each
part also runs alone: `python -m benchmarks.queue`, `.stories`, `.planning`, `.tick`, `.empty`, `.startup`.
`python -m benchmarks.peer` measures beside SQLMesh.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from benchmarks.backfill import ONE_SHOT, backfill_part, scenarios
from benchmarks.commands import RESULTS
from benchmarks.empty import empty_part
from benchmarks.estimates import estimates_part
from benchmarks.planning import planning_part
from benchmarks.queue import queue_part
from benchmarks.report import Report
from benchmarks.scenarios import DAYS, Bench
from benchmarks.startup import startup_part
from benchmarks.stories import stories_part
from benchmarks.tick import tick_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.part import Part

err = Console(stderr=True, highlight=False)


def bench(
    events: Annotated[int, typer.Option(help="how many ad events")] = 10_000_000,
    days: Annotated[int, typer.Option(help="how many days the day-by-day run measures")] = 30,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,  # noqa: FBT002
) -> None:
    """Measure, print, and keep the numbers as JSON beside the earlier ones."""
    subject = Bench(folder.resolve(), events)
    about: dict[str, float] = {"events": events, "days": DAYS}
    report = Report(about)
    err.print(f"ad events: {events:,}")
    about["landing_s"] = round(subject.land(), 1)
    for part in _parts(subject, days):
        err.print(report.add(part))
    kept = report.keep(folder, str(events))
    if as_json:
        typer.echo(report.json)
        return
    for line in (
        line for reported in report.parts for line in (*reported.lines, *reported.compared)
    ):
        typer.echo(line)
    err.print(f"kept as {kept}")


def _parts(subject: Bench, days: int) -> Iterator[Part]:
    found = scenarios(subject, days, err.print)
    yield backfill_part(found, subject.events)
    yield startup_part(subject.start_up())
    yield stories_part(subject, found[ONE_SHOT])
    yield estimates_part(subject)
    yield queue_part(subject, told=err.print)
    yield planning_part()
    yield tick_part(subject.folder)
    yield empty_part(subject.folder)


if __name__ == "__main__":
    typer.run(bench)
