"""Trust: what audits, comparisons, reports and explanations cost on 540 days: `python -m benchmarks.trust`.

A filled project is changed as in S2 (all three models in new tables), compared, promoted, reported and explained,
by commands that are processes of their own. Then defects are planted in each model.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets_tests.stories.edits import conversions_by_reported_day
from backfill_assets_tests.stories.project import EVENTS, MODELS, PERFORMANCE, day, new_project
from benchmarks.commands import BACKFILL, RESULTS
from benchmarks.goals import goals_table
from benchmarks.process import measured
from benchmarks.scenarios import Bench
from benchmarks.stories import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.stories.project import Project
    from benchmarks.process import Measured

_CHANGES = 2
_MEGABYTE = 1e6
_NUMBER = (PERFORMANCE, str(day(100)), "conversions")
"""The number that is explained: of a day that the plan changes."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its name, its value, and what it should be."""

    name: str
    value: float
    goal: str


def figures(bench: Bench) -> Iterator[Figure]:
    """Fill a project, change it, and measure what makes the change trusted."""
    folder = bench.folder / "runs" / "trust"
    shutil.rmtree(folder, ignore_errors=True)
    project = new_project(folder)
    (project.data / EVENTS).parent.mkdir(parents=True)
    (project.data / EVENTS).symlink_to((bench.source / EVENTS).resolve())
    _do(project, "run", "--json")
    conversions_by_reported_day(project)
    plan = json.loads(_do(project, "plan", "--json").output)["plan_id"]
    steps = json.loads(_do(project, "apply", plan, "--json").output)["seconds"]
    yield from _built(steps, _do(project, "diff", plan, PERFORMANCE, "--json").wall)
    _do(project, "promote", plan, "--yes", "--json")
    yield from _told(project, plan)
    for model in MODELS:
        planted = _do(project, "audit", "--mutate", model, "--json")
        yield Figure(f"planted defects of {model}, seconds", planted.wall, "≤ 60")
    shutil.rmtree(folder)


def _built(steps: dict[str, dict[str, float]], compared: float) -> Iterator[Figure]:
    """Hold audits and the comparison against what computing and committing took."""
    audits = sum(one["audit"] for one in steps.values())
    rest = sum(one["compute"] + one["commit"] for one in steps.values())
    yield Figure("audits / compute and commit, three models", audits / rest, "≤ 0.25")
    own = sum(steps[PERFORMANCE].values())
    yield Figure("diff of 540 days, whole command / its batches", compared / own, "≤ 1")


def _told(project: Project, plan: str) -> Iterator[Figure]:
    """Measure what a reader waits for."""
    page = project.folder / "report.html"
    report = _do(project, "evidence", "report", plan, "--out", str(page))
    yield Figure("report, whole command, seconds", report.wall, "< 3")
    yield Figure("report, megabytes", page.stat().st_size / _MEGABYTE, "< 2")
    _do(project, "explain", *_NUMBER, "--json")
    yield Figure(
        "explain, second time, seconds", _do(project, "explain", *_NUMBER, "--json").wall, "≤ 2"
    )


def _do(project: Project, *words: str) -> Measured:
    return measured([*BACKFILL, *words], variables(project), ends=(0, _CHANGES))


def main(
    events: Annotated[int, typer.Option(help="how many ad events")] = 1_000_000,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
) -> None:
    """Measure, and hold each figure against its goal."""
    bench = Bench(folder.resolve(), events)
    bench.land()
    found = [(one.name, one.value, one.goal) for one in figures(bench)]
    for line in goals_table(found):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
