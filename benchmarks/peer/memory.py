"""Memory: the peak of a first deployment, beside that of one with a tenth of the events per batch."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.part import Part, rounded
from benchmarks.peer.ours import Ours
from benchmarks.peer.raw import land
from benchmarks.peer.subject import Size

if TYPE_CHECKING:
    from pathlib import Path

_GROWTH = "peak memory, with ten times the events per batch"
_GOALS = {_GROWTH: "≤ 1.2"}


def memory_part(folder: Path, size: Size) -> Part:
    """Fill both with the same batches."""
    few, many = (_peak(folder, Size(events, size.days)) for events in _events(size))
    return Part(
        name="memory",
        figures=rounded({"few_mb": few, "many_mb": many}),
        lines=(f"peak memory of `backfill run`: {few:,.0f} MB, then {many:,.0f} MB",),
        ratios={_GROWTH: many / few},
        goals=_GOALS,
    )


def _events(size: Size) -> tuple[int, int]:
    return size.events // 10, size.events


def _peak(folder: Path, size: Size) -> float:
    project = Ours.new(folder / "memory", size, land(folder, size))
    peak = project.command("run").peak_mb
    shutil.rmtree(project.folder)
    return peak
