"""The queue: 540 days released by the sensor to Dagster's run queue, beside one process.

`python -m benchmarks.queue` measures it alone, every case beside `backfill run` with the same batches;
the benchmark as a whole has it too.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.commands import RESULTS
from benchmarks.part import Part, rounded
from benchmarks.queue_case import Queued, connected, through_queue
from benchmarks.scenarios import DAYS, FIRST, LAST, MODEL, Bench, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CASES = ((30, 2), (30, 4), (90, 2), (90, 4))
"""Days per batch, and how many batches may be in flight."""
_GOALS = {"queue, Connect / one process": "≤ 1.3", "CPU s of a run, Connect": "≤ 5"}
_Ways = dict[str, Queued | Outcome]


def queue_part(
    bench: Bench,
    cases: tuple[tuple[int, int], ...] = CASES,
    told: Callable[[str], object] = lambda _: None,
) -> Part:
    """Measure every case: one process, a Spark per run, and one Connect server for all runs.

    Args:
        bench: where, and how many events.
        cases: days per batch, and batches at once.
        told: is told of each way as it ends.
    """
    found: dict[str, _Ways] = {}
    for days, limit in cases:
        case = f"batches of {days}, {limit} at once"
        ways: dict[str, Callable[[Bench, int, int], Queued | Outcome]] = {
            "one process": Bench.in_batches,
            "queue, own Spark": through_queue,
            "queue, Connect": connected,
        }
        found[case] = {}
        for way, measure in ways.items():
            found[case][way] = measure(bench, days, limit)
            told(f"{way}, {case}: {found[case][way].wall:.1f} s")
    ratios = _ratios(found)
    return Part(
        name="queue",
        figures={
            case: {way: rounded(asdict(taken)) for way, taken in ways.items()}
            for case, ways in found.items()
        },
        lines=tuple(_lines(found)),
        ratios=ratios,
        goals={
            name: goal
            for name in ratios
            for about, goal in _GOALS.items()
            if name.startswith(f"{about}, ")
        },
    )


def _ratios(found: Mapping[str, _Ways]) -> dict[str, float]:
    """Compare each case with the same batches in one process."""
    ratios: dict[str, float] = {}
    for case, ways in found.items():
        alone, shared = ways["one process"].wall, ways["queue, Connect"]
        for way, taken in ways.items():
            if isinstance(taken, Queued):
                ratios[f"{way} / one process, {case}"] = taken.wall / alone
        if isinstance(shared, Queued):
            ratios[f"CPU s of a run, Connect, {case}"] = shared.run_cpu
    return ratios


def _lines(found: Mapping[str, _Ways]) -> list[str]:
    lines: list[str] = []
    for case, ways in found.items():
        lines.append(f"{DAYS} days in {case}:")
        for way, taken in ways.items():
            steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in taken.steps.items())
            lines += [
                f"  {way:<18} {taken.wall:6.1f} s, {taken.cpu:6.1f} CPU s, {taken.peak_mb:6,.0f} MB"
                + _processes(taken),
                f"  {'':<18} {steps} s",
            ]
    return lines


def _processes(taken: Queued | Outcome) -> str:
    if not isinstance(taken, Queued):
        return ""
    server = f", {taken.server_cpu:.1f} the server's" if taken.server_cpu else ""
    return f", {taken.runs} runs, {taken.run_cpu:.1f} CPU s each{server}"


def main(
    events: Annotated[int, typer.Option(help="how many ad events")] = 10_000_000,
    days: Annotated[int, typer.Option(help="days per batch; 0 for every case")] = 0,
    limit: Annotated[int, typer.Option(help="batches at once")] = 2,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
) -> None:
    """Measure the queue alone."""
    bench = Bench(folder.resolve(), events)
    bench.land()
    part = queue_part(bench, ((days, limit),) if days else CASES)
    typer.echo(f"{events:,} ad events, {FIRST}..{LAST}, {MODEL}")
    for line in (*part.lines, *part.compared):
        typer.echo(line)


if __name__ == "__main__":
    sys.exit(typer.run(main))
