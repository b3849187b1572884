"""The backfill itself: 540 days of campaign performance, by us and without us, one after the other."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.part import Part, rounded
from benchmarks.scenarios import DAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.scenarios import Bench, Outcome

ONE_SHOT, OURS = "one-shot job", "backfill run"
WITHOUT_US = "one-shot job, Java's own options"
_WHOLE, _CPU = "ours / one-shot, whole processes", "ours / one-shot, CPU"
_PLAIN = ", Java's own options"
_TURNS = 3
_GOALS = {
    "ours / one-shot": "≤ 1.5",
    _WHOLE: "≤ 1.25",
    _CPU: "≤ 1.3",
    _WHOLE + _PLAIN: "≤ 1.25",
    _CPU + _PLAIN: "≤ 1.3",
    "day by day / ours": "≥ 5",
    "nothing to do, s": "< 12",
}


def scenarios(
    bench: Bench, days: int, told: Callable[[str], object] = lambda _: None
) -> dict[str, Outcome]:
    """Run every scenario.

    Args:
        bench: where, and how many events.
        days: how many days the day-by-day run measures.
        told: is told of each scenario as it ends.
    """
    found: dict[str, Outcome] = {}
    for name, run in {
        "compute only": bench.noop,
        ONE_SHOT: bench.one_shot,
        OURS: bench.backfill,
        "nothing to do": bench.nothing_to_do,
        "dagster materialize": bench.dagster,
        "day by day": lambda: bench.day_by_day(days),
    }.items():
        found[name] = outcome = run()
        told(f"{name}: {outcome.wall:.1f} s, {outcome.work:.1f} of work")
    return found


def backfill_part(found: Mapping[str, Outcome], events: int) -> Part:
    """Give what was measured as a part of the benchmark."""
    return Part(
        name="scenarios",
        figures={name: rounded(asdict(outcome)) for name, outcome in found.items()},
        lines=tuple(_lines(found, events)),
        ratios=_ratios(found),
        goals=_GOALS,
    )


def _ratios(found: Mapping[str, Outcome]) -> dict[str, float]:
    one_shot, ours = found[ONE_SHOT], found[OURS]
    daily, dagster = found["day by day"], found["dagster materialize"]
    return {
        "ours / one-shot": ours.work / one_shot.work,
        **whole_processes(one_shot, ours),
        "dagster / one-shot": dagster.work / one_shot.work,
        "day by day / ours": daily.work / ours.work,
        "nothing to do, s": found["nothing to do"].wall,
    }


def whole_processes(one_shot: Outcome, ours: Outcome) -> dict[str, float]:
    """Compare our whole process with that of the one job."""
    return {_WHOLE: ours.wall / one_shot.wall, _CPU: ours.cpu / one_shot.cpu}


def against_one_shot(bench: Bench) -> Part:
    """Measure these scenarios alone, three times in turns: beside the job in a Spark as ours, and without us."""
    ways = {
        ONE_SHOT: bench.one_shot,
        WITHOUT_US: bench.one_shot_without_us,
        OURS: bench.backfill,
    }
    turns = [{name: run() for name, run in ways.items()} for _ in range(_TURNS)]
    found = {name: _middle([turn[name] for turn in turns]) for name in ways}
    plain = whole_processes(found[WITHOUT_US], found[OURS])
    return Part(
        name="scenarios",
        figures={name: rounded(asdict(outcome)) for name, outcome in found.items()},
        lines=tuple(_lines(found, bench.events)),
        ratios={
            **whole_processes(found[ONE_SHOT], found[OURS]),
            **{name + _PLAIN: ratio for name, ratio in plain.items()},
        },
        goals=_GOALS,
    )


def _middle(outcomes: Sequence[Outcome]) -> Outcome:
    """Give the outcome whose process took neither the shortest nor the longest."""
    return sorted(outcomes, key=lambda outcome: outcome.wall)[len(outcomes) // 2]


def _lines(found: Mapping[str, Outcome], events: int) -> list[str]:
    table = Table(title=f"{events:,} ad events, {DAYS} days", box=None, pad_edge=False)
    for name in ("", "whole s", "work s", "CPU s", "peak MB", "processes", "what"):
        table.add_column(name, justify="left" if name in ("", "what") else "right")
    for name, outcome in found.items():
        numbers = (f"{value:,.1f}" for value in (outcome.wall, outcome.work, outcome.cpu))
        table.add_row(
            name, *numbers, f"{outcome.peak_mb:,.0f}", f"{outcome.processes:,}", outcome.note
        )
    console = Console(highlight=False)
    with console.capture() as shown:
        console.print(table)
    lines = shown.get().splitlines()
    for name, outcome in found.items():
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in outcome.steps.items())
        if steps:
            lines.append(f"{name}: {steps} s")
    return [*lines, "(Steps of batches that ran side by side are summed over the batches.)"]
