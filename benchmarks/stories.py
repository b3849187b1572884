"""Stories: what changing history costs as whole commands, plan, apply and promote, on 540 days.

    S1         three columns are added to performance; return on investment follows, trends do not
    S2         conversions count on another day: all three models are computed anew
    restating  thirty days of the source are restated, four of which really differ

Each starts from a copy of a filled project and runs the commands as processes of their own. `python
-m benchmarks.stories` measures them alone, beside the one-shot job; the benchmark as a whole has
them too.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets_tests.stories.edits import add_conversion_value, conversions_by_reported_day
from backfill_assets_tests.stories.landing import raise_cost
from backfill_assets_tests.stories.project import EVENTS, Project, copied, day, new_project
from benchmarks.commands import BACKFILL, RESULTS
from benchmarks.part import Part, rounded
from benchmarks.process import measured
from benchmarks.recorded import batch_spans
from benchmarks.scenarios import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.scenarios import Outcome

FIRST, DAYS, WRONG = 300, 30, (305, 306, 320, 329)
"""Days of the history: from which on, and how many, are restated, and which of them differ."""

WITHIN = "0.5 to 2"
"""Of what was taken, an estimate."""
_CHANGES = 2


@dataclass(frozen=True, slots=True)
class Story:
    """What one story took.

    Attributes:
        commands: seconds of each whole command.
        work: seconds from the start of the plan's first batch to the end of its last.
        steps: seconds by step, summed over batches that ran side by side.
        batches: how many the plan took.
        cells: how many they built.
        cpu: CPU seconds of all commands together.
        peak_mb: the largest resident memory of any of them, Python and JVM together.
        estimated: seconds (P50) that the plan said apply and promote would take.
        note: what a reader must know of it.
    """

    commands: Mapping[str, float]
    work: float
    steps: Mapping[str, float]
    batches: int
    cells: int
    cpu: float
    peak_mb: float
    estimated: float
    note: str = ""

    @property
    def expectation(self) -> float:
        """The estimate, in parts of what carrying the plan out took."""
        return self.estimated / (self.commands["apply"] + self.commands["promote"])

    @property
    def wall(self) -> float:
        """Seconds of all commands."""
        return sum(self.commands.values())


def stories(bench: Bench) -> dict[str, Story]:
    """Fill a project once, then live through each story on a copy of it."""
    folder = bench.folder / "runs" / "stories"
    shutil.rmtree(folder, ignore_errors=True)
    base = _filled(bench, folder / "base")
    told = {
        "S1": _Telling(base, folder / "s1").tell(
            add_conversion_value, "performance and return on investment in new tables"
        ),
        "S2": _Telling(base, folder / "s2").tell(
            conversions_by_reported_day, "all three models in new tables"
        ),
        "restating 30 days": _Telling(base, folder / "restating").tell(
            lambda project: raise_cost(project, map(day, WRONG)),
            "4 of the 30 days differ; below performance only their readers are built",
            *("--restate", f"marketing.ad_events:{day(FIRST)}..{day(FIRST + DAYS - 1)}"),
        ),
    }
    shutil.rmtree(folder)
    return told


def stories_part(bench: Bench, one_shot: Outcome) -> Part:
    """Measure them as a part of the benchmark."""
    told = stories(bench)
    return Part(
        name="stories",
        figures={name: rounded(asdict(story)) for name, story in told.items()},
        lines=tuple(story_lines(told)),
        ratios={**ratios(told, one_shot), **expectations(told)},
        goals=dict.fromkeys(expectations(told), WITHIN),
    )


def ratios(told: Mapping[str, Story], one_shot: Outcome) -> dict[str, float]:
    """Compare with the one job that computes performance alone over all days, and writes it."""
    return {f"{name} / one-shot": story.work / one_shot.work for name, story in told.items()} | {
        f"{name} / one-shot, whole processes": story.wall / one_shot.wall
        for name, story in told.items()
    }


def expectations(told: Mapping[str, Story]) -> dict[str, float]:
    """Hold each estimate against what apply and promote took."""
    return {f"{name}, estimated / taken": story.expectation for name, story in told.items()}


def story_lines(told: Mapping[str, Story]) -> list[str]:
    """Write what each story took."""
    lines: list[str] = []
    for name, story in told.items():
        commands = ", ".join(f"{verb} {seconds:.1f}" for verb, seconds in story.commands.items())
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in story.steps.items())
        lines += [
            f"{name}: {story.wall:.1f} s ({commands}), {story.work:.1f} of work; {story.note}",
            f"    {story.batches} batches of {story.cells} cells: {steps} s",
            f"    {story.cpu:.0f} s of CPU, at most {story.peak_mb:,.0f} MB",
        ]
    return lines


@dataclass(slots=True)
class _Telling:
    """One story on a copy of a filled project."""

    base: Project
    folder: Path
    commands: dict[str, float] = field(default_factory=dict[str, float])
    cpu: float = 0.0
    peak_mb: float = 0.0

    def tell(self, edit: Callable[[Project], None], note: str, *asked: str) -> Story:
        """Edit the copy, then plan, apply and promote."""
        project = copied(self.base, self.folder)
        edit(project)
        made = json.loads(self._do(project, "plan", *asked, "--json"))
        plan = made["plan_id"]
        built = json.loads(self._do(project, "apply", plan, "--json"))
        self._do(project, "promote", plan, "--yes", "--json")
        spans = batch_spans(project.data / "state.db", plan)
        shutil.rmtree(self.folder)
        return Story(
            commands=self.commands,
            work=max(end for _, end in spans) - min(start for start, _ in spans),
            steps=_summed(built.get("seconds", {})),
            batches=len(spans),
            cells=sum(model["done"] for model in built["progress"]),
            cpu=self.cpu,
            peak_mb=self.peak_mb,
            estimated=made["estimate"]["seconds"][0],
            note=note,
        )

    def _do(self, project: Project, *words: str) -> str:
        run = measured([*BACKFILL, *words], variables(project), ends=(0, _CHANGES))
        self.commands[words[0]] = run.wall
        self.cpu += run.cpu
        self.peak_mb = max(self.peak_mb, run.peak_mb)
        return run.output


def _filled(bench: Bench, folder: Path) -> Project:
    project = new_project(folder)
    (project.data / EVENTS).parent.mkdir(parents=True)
    (project.data / EVENTS).symlink_to((bench.source / EVENTS).resolve())
    measured([*BACKFILL, "run", "--json"], variables(project))
    return project


def variables(project: Project) -> dict[str, str]:
    """Say where the project lies; Spark gets what the other scenarios give it."""
    kept = ("BACKFILL_CATALOG", "BACKFILL_DATA_DIR", "BACKFILL_JARS_DIR", "PYTHONPATH", "COLUMNS")
    return {name: value for name, value in project.variables.items() if name in kept}


def _summed(seconds: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Add up the steps of all models."""
    total: dict[str, float] = {}
    for steps in seconds.values():
        for step, took in steps.items():
            total[step] = total.get(step, 0.0) + took
    return total


def main(
    events: Annotated[int, typer.Option(help="how many ad events")] = 1_000_000,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
) -> None:
    """Measure the stories and the one-shot job."""
    bench = Bench(folder.resolve(), events)
    bench.land()
    one_shot, told = bench.one_shot(), stories(bench)
    typer.echo(
        f"{events:,} ad events; one-shot job: {one_shot.wall:.1f} s, {one_shot.work:.1f} of work"
    )
    for line in story_lines(told):
        typer.echo(line)
    for name, ratio in {**ratios(told, one_shot), **expectations(told)}.items():
        typer.echo(f"{name}: {ratio:.2f}")


if __name__ == "__main__":
    typer.run(main)
