"""Ways there and back: what `diff`, `promote`, `rollback` and `undo` of restated cells take.

The events are corrected in a copy of a filled project, so the restated cells really differ and all
three models follow. None of these commands has anything to compute; but for `diff` of the rows, none
has a reason to start a JVM.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from benchmarks.part import Part, rounded
from benchmarks.peer.ours import EVENTS, Ours, plan_of
from benchmarks.peer.raw import land
from benchmarks.peer.subject import LAST_DAY, SOURCE

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peer.subject import Size
    from benchmarks.process import Measured

FEW = 28
_GOALS = {
    "promote, all cells": "≤ 3",
    "rollback, all cells": "≤ 3",
    "undo, all cells": "≤ 3",
    f"promote, {FEW} cells": "≤ 3",
    f"diff, {FEW} cells": "≤ 8",
}


def ways_back(folder: Path, size: Size) -> Part:
    """Fill a project, and restate all days, and a few, in copies of it.

    Args:
        folder: where it and its copies lie while they are measured.
        size: how much there is to compute.
    """
    filled = Ours.new(folder / "filled", size, land(folder, size))
    filled.command("run")
    found = _there_and_back(filled, folder) | _few(filled, folder)
    shutil.rmtree(filled.folder)
    jvms = {
        f"{name}, JVMs": float(command.jvm) for name, command in found.items() if "diff" not in name
    }
    seconds = {f"{name}, s": command.wall for name, command in found.items()}
    return Part(
        name="ways_back",
        figures=rounded(seconds | jvms),
        lines=tuple(f"{name}: {_told(command)}" for name, command in found.items()),
        ratios=seconds | jvms,
        goals={f"{name}, s": goal for name, goal in _GOALS.items()} | dict.fromkeys(jvms, "≤ 0"),
    )


def _there_and_back(filled: Ours, folder: Path) -> dict[str, Measured]:
    """Restate all days and promote; then go back in two ways, from copies of what that came to."""
    there = filled.copied(folder / "there")
    plan = _restated(there, filled.size.days)
    found = {"promote": there.promote(plan)}
    for verb in ("rollback", "undo"):
        back = there.copied(folder / "back")
        found[verb] = back.command(verb, plan_of(plan), "--yes")
        shutil.rmtree(back.folder)
    shutil.rmtree(there.folder)
    return {f"{verb}, all cells": command for verb, command in found.items()}


def _few(filled: Ours, folder: Path) -> dict[str, Measured]:
    """Restate some days, compare them as a reviewer would, and promote."""
    there = filled.copied(folder / "few")
    plan = _restated(there, FEW)
    differs = 2
    found = {"diff": there.command("diff", plan_of(plan), ends=(differs,))}
    found["promote"] = there.promote(plan)
    shutil.rmtree(there.folder)
    return {f"{verb}, {FEW} cells": command for verb, command in found.items()}


def _restated(project: Ours, days: int) -> Measured:
    """Correct the clicks of the last days at the source, restate these days, and build them."""
    first = LAST_DAY - timedelta(days=days - 1)
    DeltaTable(project.folder / EVENTS).update(
        updates={"cost": "cost + 1.0"},
        predicate=f"event_type = 'click' AND event_date >= CAST('{first}' AS DATE)",
    )
    return project.build("--restate", f"{SOURCE}:{first}..{LAST_DAY}")["plan"]


def _told(run: Measured) -> str:
    return f"{run.wall:.1f} s, {run.cpu:.1f} CPU s, {'a JVM' if run.jvm else 'no JVM'}"
