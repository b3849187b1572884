"""The demo: what `make demo` takes once the environment is ready, in a folder of its own.

`python -m benchmarks.demo` measures it alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from benchmarks.commands import RESULTS
from benchmarks.part import Part, rounded
from benchmarks.process import measured

_SECONDS = "demo from a ready environment, s"
_GOALS = {_SECONDS: "≤ 120"}
_INSTANCE = Path(__file__).parents[1] / "dagster.yaml"


def demo_part(folder: Path) -> Part:
    """Measure it as a part of the benchmark."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(_INSTANCE, folder)
    env = {
        "BACKFILL_DATA_DIR": str(folder / "data"),
        "DAGSTER_HOME": str(folder),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    run = measured([sys.executable, "-m", "backfill_assets.cli.verbs.demo"], env)
    shutil.rmtree(folder)
    line = f"demo: {run.wall:.0f} s, {run.cpu:.0f} CPU s, at most {run.peak_mb:,.0f} MB"
    return Part("demo", rounded({"s": run.wall}), (line,), {_SECONDS: run.wall}, _GOALS)


def main() -> None:
    """Measure it alone."""
    part = demo_part((RESULTS / "runs" / "demo").resolve())
    for line in (*part.lines, *part.compared):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
