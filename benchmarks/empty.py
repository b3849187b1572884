"""The empty backfill: 5,000 hours are recorded as ready without computing one.

`python -m benchmarks.empty` measures it alone; the benchmark as a whole has it too.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import typer

from benchmarks.commands import BACKFILL, RESULTS
from benchmarks.hours_catalog import HOURS
from benchmarks.part import Part, rounded
from benchmarks.process import measured

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.process import Measured

_SECONDS, _JVMS = f"empty backfill of {HOURS:,} cells, s", "JVMs of an empty backfill"
_GOALS = {_SECONDS: "≤ 6", _JVMS: "≤ 0"}


def empty_backfill(folder: Path) -> dict[str, Measured]:
    """Plan, apply and promote it as whole commands.

    Raises:
        ValueError: not every hour became ready.
    """
    shutil.rmtree(folder, ignore_errors=True)
    env = {"BACKFILL_CATALOG": "benchmarks.hours_catalog", "BACKFILL_DATA_DIR": str(folder)}
    planned = measured([*BACKFILL, "plan", "--empty", "--json"], env, ends=(2,))
    plan = json.loads(planned.output)["plan_id"]
    applied = measured([*BACKFILL, "apply", plan, "--json"], env)
    promoted = measured([*BACKFILL, "promote", plan, "--yes", "--json"], env)
    status = measured([*BACKFILL, "status", "--json"], env)
    ready = json.loads(status.output)["models"][0]["ready"]
    if ready != HOURS:
        raise ValueError(ready)
    shutil.rmtree(folder)
    return {"plan": planned, "apply": applied, "promote": promoted}


def empty_part(folder: Path) -> Part:
    """Measure it as a part of the benchmark."""
    found = empty_backfill(folder / "runs" / "empty")
    took = {verb: command.wall for verb, command in found.items()}
    each = ", ".join(f"{verb} {seconds:.1f}" for verb, seconds in took.items())
    whole = sum(took.values())
    return Part(
        name="empty_s",
        figures=rounded(took),
        lines=(f"empty backfill of {HOURS:,} cells: {whole:.1f} s ({each})",),
        ratios={_SECONDS: whole, _JVMS: sum(command.jvm for command in found.values())},
        goals=_GOALS,
    )


def main() -> None:
    """Measure it alone."""
    part = empty_part(RESULTS)
    for line in (*part.lines, *part.compared):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
