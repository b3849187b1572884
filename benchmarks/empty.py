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

GOAL = 30


def empty_backfill(folder: Path) -> dict[str, float]:
    """Plan, apply and promote it as whole commands; give the seconds of each.

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
    return {"plan": planned.wall, "apply": applied.wall, "promote": promoted.wall}


def empty_part(folder: Path) -> Part:
    """Measure it as a part of the benchmark."""
    took = empty_backfill(folder / "runs" / "empty")
    each, whole = ", ".join(f"{verb} {took[verb]:.1f}" for verb in took), sum(took.values())
    name = f"empty backfill of {HOURS:,} cells, s"
    return Part(
        name="empty_s",
        figures=rounded(took),
        lines=(f"empty backfill of {HOURS:,} cells: {whole:.1f} s ({each}; goal < {GOAL})",),
        ratios={name: whole},
        goals={name: f"< {GOAL}"},
    )


def main() -> None:
    """Measure it alone."""
    for line in empty_part(RESULTS).lines:
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
