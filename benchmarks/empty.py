"""The empty backfill: 5,000 hours are recorded as ready without computing one.

`python -m benchmarks.empty` measures it alone; the benchmark as a whole has it too.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import typer

from benchmarks.hours_catalog import HOURS
from benchmarks.process import measured

RESULTS = Path(__file__).with_name("results")
GOAL = 30
_BACKFILL = (sys.executable, "-m", "backfill_assets.cli.app")


def empty_backfill(folder: Path) -> dict[str, float]:
    """Plan, apply and promote it as whole commands; give the seconds of each.

    Raises:
        ValueError: not every hour became ready.
    """
    shutil.rmtree(folder, ignore_errors=True)
    env = {"BACKFILL_CATALOG": "benchmarks.hours_catalog", "BACKFILL_DATA_DIR": str(folder)}
    planned = measured([*_BACKFILL, "plan", "--empty", "--json"], env, ends=(2,))
    plan = json.loads(planned.output)["plan_id"]
    applied = measured([*_BACKFILL, "apply", plan, "--json"], env)
    promoted = measured([*_BACKFILL, "promote", plan, "--yes", "--json"], env)
    status = measured([*_BACKFILL, "status", "--json"], env)
    ready = json.loads(status.output)["models"][0]["ready"]
    if ready != HOURS:
        raise ValueError(ready)
    shutil.rmtree(folder)
    return {"plan": planned.wall, "apply": applied.wall, "promote": promoted.wall}


def empty_line(took: dict[str, float]) -> str:
    """Write what it took."""
    each = ", ".join(f"{verb} {seconds:.1f}" for verb, seconds in took.items())
    return f"empty backfill of {HOURS:,} cells: {sum(took.values()):.1f} s ({each}; goal < {GOAL})"


def main() -> None:
    """Measure it alone."""
    typer.echo(empty_line(empty_backfill(RESULTS / "runs" / "empty")))


if __name__ == "__main__":
    typer.run(main)
