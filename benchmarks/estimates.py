"""Estimates: what plans were expected to take, beside what applying and promoting them took.

    first fill    a new project; nothing is recorded yet that an estimate could rest on
    column        a column is added to performance, and return on investment follows
    restating     thirty days of the source are restated, four of which really differ
    empty         gaps of a new model are recorded without being computed

All in one project, one after the other, as whole commands; so from the second plan on an estimate
rests on what the state has recorded of those before. `python -m benchmarks.estimates` measures it
alone; the benchmark as a whole has it too.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets_tests.stories.edits import add_conversion_value
from backfill_assets_tests.stories.landing import raise_cost
from backfill_assets_tests.stories.project import EVENTS, day, new_project
from benchmarks.commands import BACKFILL, RESULTS
from benchmarks.part import Part, rounded
from benchmarks.process import measured
from benchmarks.scenarios import Bench
from benchmarks.stories import WITHIN, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from backfill_assets_tests.stories.project import Project

DAYS = 90
_CHANGES = 2
_RESTATED = 30
_COPY = """
from dataclasses import replace

spend_by_day = replace(
    campaign_performance, name="marketing.spend_by_day", description="The same once more."
)
MODELS = (*MODELS, spend_by_day)
"""


@dataclass(frozen=True, slots=True)
class Estimated:
    """What a plan was expected to take, and what it took.

    Attributes:
        expected: the plan's estimate, as it stands in its JSON.
        commands: seconds of each whole command that carried the plan out.
    """

    expected: Mapping[str, Any]
    commands: Mapping[str, float]

    @property
    def taken(self) -> float:
        """Seconds of all commands."""
        return sum(self.commands.values())

    @property
    def ratio(self) -> float:
        """The median estimate, in parts of what was taken."""
        return self.expected["seconds"][0] / self.taken


def estimates(bench: Bench, days: int = DAYS) -> Iterator[tuple[str, Estimated]]:
    """Live through the plans of one project and measure each."""
    folder = bench.folder / "runs" / "estimates"
    shutil.rmtree(folder, ignore_errors=True)
    project = new_project(folder, last_day=str(day(days - 1)))
    (project.data / EVENTS).parent.mkdir(parents=True)
    shutil.copytree(bench.source / EVENTS, project.data / EVENTS)
    first, last = max(0, days - _RESTATED - 5), max(0, days - 6)
    wrong = (first, first + 1, (first + last) // 2, last)
    restated = ("--restate", f"marketing.ad_events:{day(first)}..{day(last)}")
    yield "first fill", _carried_out(project, lambda _: None)
    yield "column", _carried_out(project, add_conversion_value)
    yield (
        "restating",
        _carried_out(project, lambda copied: raise_cost(copied, map(day, wrong)), *restated),
    )
    yield (
        "empty",
        _carried_out(project, lambda copied: copied.append("models.py", _COPY), "--empty"),
    )
    shutil.rmtree(folder)


def _carried_out(project: Project, edit: Callable[[Project], None], *asked: str) -> Estimated:
    """Edit the project, plan, and carry the plan out to its end."""
    edit(project)
    env = variables(project)
    plan = json.loads(measured([*BACKFILL, "plan", *asked, "--json"], env, ends=(_CHANGES,)).output)
    name, took = plan["plan_id"], dict[str, float]()
    applied = measured([*BACKFILL, "apply", name, "--yes", "--json"], env)
    took["apply"] = applied.wall
    if json.loads(applied.output)["status"] == "built":
        took["promote"] = measured([*BACKFILL, "promote", name, "--yes", "--json"], env).wall
    return Estimated(plan["estimate"], took)


def estimates_part(bench: Bench) -> Part:
    """Measure them as a part of the benchmark."""
    told = dict(estimates(bench))
    named = {name: f"estimated / taken, {name}" for name in told}
    return Part(
        name="estimates",
        figures={name: rounded(asdict(estimated)) for name, estimated in told.items()},
        lines=tuple(estimate_line(name, estimated) for name, estimated in told.items()),
        ratios={named[name]: estimated.ratio for name, estimated in told.items()},
        goals=dict.fromkeys(named.values(), WITHIN),
    )


def estimate_line(name: str, estimated: Estimated) -> str:
    """Write what a plan was expected to take, and took."""
    expected, commands = estimated.expected, estimated.commands.items()
    middle, most = expected["seconds"]
    parts = (f"{part} {expected[part]:.1f}" for part in ("start", "batches", "promotion"))
    return (
        f"{name}: estimated {middle:.1f} s (P50), {most:.1f} (P90): {', '.join(parts)}; "
        f"taken {estimated.taken:.1f} ({', '.join(f'{verb} {took:.1f}' for verb, took in commands)}); "
        f"estimated / taken {estimated.ratio:.2f}; rests on {expected['rests_on']}"
    )


def main(
    events: Annotated[int, typer.Option(help="how many ad events, over 540 days")] = 1_000_000,
    days: Annotated[int, typer.Option(help="how many of the days are filled")] = DAYS,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
) -> None:
    """Measure the estimates alone."""
    bench = Bench(folder.resolve(), events)
    bench.land()
    for name, estimated in estimates(bench, days):
        typer.echo(estimate_line(name, estimated))


if __name__ == "__main__":
    typer.run(main)
