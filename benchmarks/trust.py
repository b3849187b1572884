"""Trust: what audits, comparisons, reports and explanations cost on 540 days: `python -m benchmarks.trust`.

A filled project is changed as in S2 (all three models in new tables), compared, promoted, reported and explained,
by commands that are processes of their own. Then defects are planted in each model.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated, TypeAlias

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

_Steps: TypeAlias = "dict[str, dict[str, float]]"
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
    bare = _begun(bench, "bare")
    _without_audits(bare)
    _, checksums = _applied(bare)
    shutil.rmtree(bare.folder)
    project = _begun(bench, "trust")
    plan, steps = _applied(project)
    yield from _audited(steps, checksums)
    compared = _do(project, "diff", plan, PERFORMANCE, "--json").wall
    own = sum(steps[PERFORMANCE].values())
    yield Figure("diff of 540 days, whole command / its batches", compared / own, "≤ 1")
    _do(project, "promote", plan, "--yes", "--json")
    yield from _told(project, plan)
    for model in MODELS:
        planted = _do(project, "audit", "--mutate", model, "--json")
        yield Figure(f"planted defects of {model}, seconds", planted.wall, "≤ 60")
    shutil.rmtree(project.folder)


def _begun(bench: Bench, name: str) -> Project:
    """Make a project over the events that are landed already."""
    folder = bench.folder / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    project = new_project(folder)
    (project.data / EVENTS).parent.mkdir(parents=True)
    (project.data / EVENTS).symlink_to((bench.source / EVENTS).resolve())
    return project


def _without_audits(project: Project) -> None:
    """Take the audits that its models declare out of a project."""
    models = project.folder / "ads" / "models.py"
    text = models.read_text()
    declared = "audits=["
    assert text.count(declared) == len(MODELS)  # noqa: S101 - it would measure something else
    models.write_text(text.replace(declared, "audits=[] and ["))


def _applied(project: Project) -> tuple[str, _Steps]:
    """Fill a project and build the change in it; give the plan and the seconds of its steps, by model."""
    _do(project, "run", "--json")
    conversions_by_reported_day(project)
    plan = json.loads(_do(project, "plan", "--json").output)["plan_id"]
    return plan, json.loads(_do(project, "apply", plan, "--json").output)["seconds"]


def _audited(steps: _Steps, bare: _Steps) -> Iterator[Figure]:
    """Hold what audits add against computing and committing; the checksums are made without them, too."""
    both, checksums = (sum(seconds["audit"] for seconds in each.values()) for each in (steps, bare))
    rest = sum(seconds["compute"] + seconds["commit"] for seconds in steps.values())
    yield Figure("audits / compute and commit, three models", (both - checksums) / rest, "≤ 0.25")
    yield Figure("audits and checksums / compute and commit", both / rest, "")


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
    found = [(figure.name, figure.value, figure.goal) for figure in figures(bench)]
    for line in goals_table(found):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
