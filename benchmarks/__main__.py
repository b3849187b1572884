"""`python -m benchmarks`: 540 days of campaign performance, by us and without us, on this machine.

Every scenario is a process of its own, so each pays for its own start; `work` leaves that out.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import planning
from benchmarks.scenarios import DAYS, Bench, Outcome
from benchmarks.startup import startup_lines
from benchmarks.stories import ratios as story_ratios, stories, story_lines

RESULTS = Path(__file__).with_name("results")
GOALS = {"ours / one-shot": "≤ 1.5", "day by day / ours": "≥ 5", "nothing to do, s": "< 12"}

err = Console(stderr=True, highlight=False)


def bench(
    events: Annotated[int, typer.Option(help="how many ad events")] = 10_000_000,
    days: Annotated[int, typer.Option(help="how many days the day-by-day run measures")] = 30,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,  # noqa: FBT002
) -> None:
    """Measure, print, and keep the numbers as JSON beside the earlier ones."""
    subject = Bench(folder.resolve(), events)
    began = datetime.now(UTC)  # noqa: TID251 - an entrance, as cli is one
    load = [os.getloadavg()[0]]
    err.print(f"ad events: {events:,}")
    landed = subject.land()
    scenarios = {
        "compute only": subject.noop,
        "one-shot job": subject.one_shot,
        "backfill run": subject.backfill,
        "nothing to do": subject.nothing_to_do,
        "dagster materialize": subject.dagster,
        "day by day": lambda: subject.day_by_day(days),
    }
    outcomes: dict[str, Outcome] = {}
    for name, scenario in scenarios.items():
        outcomes[name] = scenario()
        load.append(os.getloadavg()[0])
        one = outcomes[name]
        err.print(f"{name}: {one.wall:.1f} s, {one.work:.1f} of work (load {load[-1]:.1f})")
    start_up = subject.start_up()
    told = stories(subject)
    load.append(os.getloadavg()[0])
    report = {
        "at": began.isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load": load},
        "events": events,
        "days": DAYS,
        "landing_s": round(landed, 1),
        "scenarios": {name: _rounded(asdict(outcome)) for name, outcome in outcomes.items()},
        "start_up_s": _rounded(start_up),
        "stories": {name: _rounded(asdict(story)) for name, story in told.items()},
        "ratios": _ratios(outcomes) | _rounded(story_ratios(told, outcomes["one-shot job"])),
        "planning": planning.measured(),
        "goals": GOALS,
    }
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{began:%Y%m%dT%H%M%S}-{events}.json"
    kept.write_text(json.dumps(report, indent=2) + "\n")
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        _show(outcomes, report, story_lines(told))
        Console(highlight=False).print(planning.shown(report["planning"]))
        err.print(f"kept as {kept}")


def _ratios(outcomes: dict[str, Outcome]) -> dict[str, float]:
    one_shot, ours = outcomes["one-shot job"], outcomes["backfill run"]
    daily, dagster = outcomes["day by day"], outcomes["dagster materialize"]
    return _rounded(
        {
            "ours / one-shot": ours.work / one_shot.work,
            "ours / one-shot, whole processes": ours.wall / one_shot.wall,
            "ours / one-shot, CPU": ours.cpu / one_shot.cpu,
            "dagster / one-shot": dagster.work / one_shot.work,
            "day by day / ours": daily.work / ours.work,
            "nothing to do, s": outcomes["nothing to do"].wall,
        }
    )


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return round(value, 2) if isinstance(value, float) else value


def _show(outcomes: dict[str, Outcome], report: dict[str, Any], told: list[str]) -> None:
    console = Console(highlight=False)
    table = Table(title=f"{report['events']:,} ad events, {DAYS} days", box=None, pad_edge=False)
    for name in ("", "whole s", "work s", "CPU s", "peak MB", "processes", "what"):
        table.add_column(name, justify="left" if name in ("", "what") else "right")
    for name, one in outcomes.items():
        numbers = (f"{value:,.1f}" for value in (one.wall, one.work, one.cpu))
        table.add_row(name, *numbers, f"{one.peak_mb:,.0f}", f"{one.processes:,}", one.note)
    console.print(table)
    for name, one in outcomes.items():
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in one.steps.items())
        if steps:
            console.print(f"{name}: {steps} s")
    console.print("(Steps of batches that ran side by side are summed over the batches.)")
    for line in (*startup_lines(report["start_up_s"]), *told):
        console.print(line)
    for name, value in report["ratios"].items():
        console.print(f"{name}: {value}" + (f" (goal {GOALS[name]})" if name in GOALS else ""))


if __name__ == "__main__":
    typer.run(bench)
