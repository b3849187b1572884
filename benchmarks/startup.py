"""Start-up: how long a person waits for a command that has nothing to do.

`python -m benchmarks.startup` measures on an empty state, where `plan` finds gaps; the benchmark as
a whole measures on a finished backfill, where it finds nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import typer

from benchmarks.commands import BACKFILL
from benchmarks.part import Part, rounded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RUNS = 7
_ENDS = {0, 2}  # 2: a plan that has changes
CATALOG = "a process that imports the catalog"
PLAN = "backfill plan"


def start_up(env: Mapping[str, str], asked: Sequence[str] = ()) -> dict[str, float]:
    """Give the median seconds of whole processes, warm.

    Args:
        env: says where the project's data lies.
        asked: options of `plan`.
    """
    given = {**os.environ, **env, "PYTHONDONTWRITEBYTECODE": ""}  # noqa: TID251 - passed on
    cache = Path(env["BACKFILL_DATA_DIR"], ".cache")
    plan = [*BACKFILL, "plan", *asked]
    catalog = [sys.executable, "-c", "import backfill_assets.pipelines.catalog"]
    return {
        CATALOG: _median(catalog, given),
        "backfill --help": _median([*BACKFILL, "--help"], given),
        "backfill status": _median([*BACKFILL, "status"], given),
        PLAN: _median(plan, given),
        f"{PLAN}, after an edit": _median(
            plan, given, before=lambda: shutil.rmtree(cache, ignore_errors=True)
        ),
    }


def _median(
    command: Sequence[str], env: Mapping[str, str], before: Callable[[], None] = lambda: None
) -> float:
    """Run a command some times, once more to warm up, and give the median of its seconds."""
    took: list[float] = []
    for _ in range(RUNS + 1):
        before()
        began = time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        took.append(time.perf_counter() - began)
        if done.returncode not in _ENDS:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return median(took[1:])


def startup_part(seconds: Mapping[str, float]) -> Part:
    """Give what was measured as a part of the benchmark."""
    return Part(
        name="start_up_s", figures=rounded({**seconds}), lines=tuple(startup_lines(seconds))
    )


def startup_lines(seconds: Mapping[str, float]) -> list[str]:
    """Write the seconds, and how a plan compares with importing the catalog, on any machine."""
    ratio = seconds[PLAN] / seconds[CATALOG]
    named = [f"{name}: {value:.2f} s" for name, value in seconds.items()]
    return [*named, f"plan / importing the catalog: {ratio:.2f}"]


def main() -> None:
    """Measure on an empty state."""
    with tempfile.TemporaryDirectory() as folder:
        for line in startup_lines(start_up({"BACKFILL_DATA_DIR": folder})):
            typer.echo(line)


if __name__ == "__main__":
    main()
