"""The steps side by side: SQLMesh's, then ours, then whether both have the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.goals import plain_table, verdict
from benchmarks.part import Part, rounded
from benchmarks.peer.ours import Ours
from benchmarks.peer.raw import land
from benchmarks.peer.same_rows import check_rows
from benchmarks.peer.steps import STEPS, Step, Taken
from benchmarks.peer.theirs import SqlMesh, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.peer.subject import Size

_LOCKED = "under a table's lock per batch, s"
_GOALS = {_LOCKED: "≤ 0.15"} | {f"{step.title} / SQLMesh": step.goal for step in STEPS if step.goal}


@dataclass(frozen=True, slots=True)
class Beside:
    """One step, taken by both.

    Attributes:
        step: what was asked.
        theirs: what SQLMesh took.
        ours: what we took.
        rows: how many rows the three models have after it, the same in both.
    """

    step: Step
    theirs: Taken
    ours: Taken
    rows: int

    @property
    def ratio(self) -> float:
        """Our seconds, in parts of SQLMesh's."""
        return self.ours.wall / self.theirs.wall


def side_by_side(
    folder: Path, size: Size, asked: Collection[str], told: Callable[[str], object]
) -> list[Beside]:
    """Take the steps in turns, each edit upon those before it, up to the last one asked for.

    Args:
        folder: where both work.
        size: how much there is to compute.
        asked: the short names of the steps that are meant.
        told: is told of each step as it ends.

    Returns:
        What was asked for; the steps before it are taken all the same.
    """
    told(f"{size}; the first time, the events and SQLMesh's environment are made")
    raw, python = land(folder, size), environment(folder)
    theirs = SqlMesh.new(python, folder / "theirs", size, raw)
    ours = Ours.new(folder / "ours", size, raw)
    found: list[Beside] = []
    for step in _up_to_last(asked):
        left, right = theirs.take(step), ours.take(step)
        rows = check_rows(step.title, left.places, right.places)
        found.append(Beside(step, left, right, rows))
        told(
            f"{step.title}: SQLMesh {left.wall:.1f} s, ours {right.wall:.1f} s; {rows:,} rows each"
        )
    return [beside for beside in found if beside.step.short in asked]


def _up_to_last(asked: Collection[str]) -> Iterator[Step]:
    last = max(number for number, step in enumerate(STEPS) if step.short in asked)
    yield from STEPS[: last + 1]


def beside_part(size: Size, found: Sequence[Beside]) -> Part:
    """Give the steps as a part of the benchmark."""
    ratios = {f"{beside.step.title} / SQLMesh": beside.ratio for beside in found}
    for measured in found:
        if measured.ours.locked is not None:
            ratios[_LOCKED] = measured.ours.locked
    return Part(
        name="beside_sqlmesh",
        figures={beside.step.title: rounded(_figures(beside)) for beside in found},
        lines=(f"{size}:", *step_lines(found)),
        ratios=ratios,
        goals=_GOALS,
    )


def step_lines(found: Sequence[Beside]) -> list[str]:
    """Write what each step took both, beside its goal."""
    headings = ("step", "SQLMesh s", "ours s", "ratio", "goal", "verdict", "rows")
    used = ("SQLMesh CPU s", "ours CPU s", "SQLMesh MB", "ours MB", "ours by command")
    return plain_table((*headings, *used), map(_row, found))


def _row(beside: Beside) -> tuple[str, ...]:
    theirs, ours, goal = beside.theirs, beside.ours, beside.step.goal
    return (
        beside.step.title,
        f"{theirs.wall:.1f}",
        f"{ours.wall:.1f}",
        f"{beside.ratio:.2f}",
        goal,
        verdict(beside.ratio, goal),
        f"{beside.rows:,}",
        f"{theirs.cpu:.0f}",
        f"{ours.cpu:.0f}",
        f"{theirs.peak_mb:,.0f}",
        f"{ours.peak_mb:,.0f}",
        ours.split,
    )


def _figures(beside: Beside) -> Mapping[str, object]:
    return {
        "rows": beside.rows,
        **{
            who: {
                "s": {verb: run.wall for verb, run in taken.commands.items()},
                "cpu_s": taken.cpu,
                "peak_mb": taken.peak_mb,
                "jvm": [verb for verb, run in taken.commands.items() if run.jvm],
            }
            for who, taken in (("sqlmesh", beside.theirs), ("ours", beside.ours))
        },
    }
