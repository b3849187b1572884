"""`python -m benchmarks.peer`: the same three models by SQLMesh and by us, on the same events.

Both work in turns, on this machine, in whole processes; SQLMesh has an environment of its own, made by
pip on the first run. After each step the rows of both are compared, and the run ends where they differ.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from benchmarks.backfill import against_one_shot
from benchmarks.commands import RESULTS
from benchmarks.demo import demo_part
from benchmarks.empty import empty_part
from benchmarks.estimates import estimates_part
from benchmarks.goals import goals_table
from benchmarks.hours import hours_part
from benchmarks.peer.beside import beside_part, side_by_side
from benchmarks.peer.growth import cases, growth_part
from benchmarks.peer.memory import memory_part
from benchmarks.peer.steps import STEPS
from benchmarks.peer.subject import FEWEST_DAYS, Size
from benchmarks.peer.ways_back import ways_back
from benchmarks.queue import queue_part
from benchmarks.report import Report
from benchmarks.scenarios import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from benchmarks.part import Part

err = Console(stderr=True, highlight=False)
_STEPS = tuple(step.short for step in STEPS)
_WAYS_BACK = "ways-back"
_OWN = (_WAYS_BACK, "memory", "hours", "demo", "empty", "backfill", "queue", "estimates")
_QUEUE_CASE = (30, 2)
_EVERYTHING = (*_STEPS, *_OWN)


def peer(  # noqa: PLR0913, PLR0917 - the options of a command
    events: Annotated[int, typer.Option(min=10, help="how many ad events")] = 10_000_000,
    days: Annotated[int, typer.Option(min=FEWEST_DAYS, help="over how many days")] = 540,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP", help=f"repeatable; one of {', '.join(_EVERYTHING)}"),
    ] = None,
    goals: Annotated[  # noqa: FBT002
        bool, typer.Option("--goals", help="all of them, for the whole table of goals: hours")
    ] = False,
    scale: Annotated[  # noqa: FBT002
        bool, typer.Option("--scale", help="3 and 10 times the events, 10 times the days: hours")
    ] = False,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,  # noqa: FBT002
) -> None:
    """Measure SQLMesh and ours in turns; print both, and whether each goal is met.

    Each edit rests on those before it, so the steps before the last one asked for are taken, too.

    Example: python -m benchmarks.peer

    Example: python -m benchmarks.peer --events 100000 --days 60 --only first --only ways-back

    Example: python -m benchmarks.peer --goals --json
    """
    asked = _EVERYTHING if goals else tuple(only or (*_STEPS, _WAYS_BACK))
    if unknown := set(asked) - {*_EVERYTHING}:
        raise typer.BadParameter(f"{', '.join(unknown)}; expected {', '.join(_EVERYTHING)}")
    size = Size(events, days)
    report = Report({"events": events, "days": days})
    for part in _parts(folder.resolve(), size, asked, scale=scale):
        err.print(report.add(part))
    kept = report.keep(folder, f"peer-{events}")
    figures = [figure for part in report.parts for figure in part.beside_goals if figure[-1]]
    for line in [report.json] if as_json else [*report.lines, "", *goals_table(figures)]:
        typer.echo(line)
    err.print(f"kept as {kept}")


def _parts(folder: Path, size: Size, asked: Collection[str], *, scale: bool) -> Iterator[Part]:
    work = folder / "peer"
    work.mkdir(parents=True, exist_ok=True)
    if steps := [name for name in _STEPS if name in asked]:
        sizes = cases(size) if scale else {"1x": size}
        found = {
            title: side_by_side(work, scaled, steps, err.print) for title, scaled in sizes.items()
        }
        yield beside_part(size, next(iter(found.values())))
        if scale:
            yield growth_part(sizes, found)
    for name, measure in _own(folder, size).items():
        if name in asked:
            yield measure()


def _own(folder: Path, size: Size) -> dict[str, Callable[[], Part]]:
    """Give the parts that SQLMesh has no side in, by name."""
    work, runs, bench = folder / "peer", folder / "runs", Bench(folder, size.events)
    return {
        _WAYS_BACK: lambda: ways_back(work, size),
        "memory": lambda: memory_part(work, size),
        "hours": lambda: hours_part(runs / "hours"),
        "demo": lambda: demo_part(runs / "demo"),
        "empty": lambda: empty_part(folder),
        "backfill": lambda: against_one_shot(_landed(bench)),
        "queue": lambda: queue_part(_landed(bench), (_QUEUE_CASE,)),
        "estimates": lambda: estimates_part(_landed(bench)),
    }


def _landed(bench: Bench) -> Bench:
    bench.land()
    return bench


if __name__ == "__main__":
    typer.run(peer)
