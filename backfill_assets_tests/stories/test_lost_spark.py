"""Spark's JVM is killed under a command: it starts another one and fills everything by itself."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.project import (
    LAST_OF_QUARTER,
    QUARTER,
    Project,
    land_events,
    new_project,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]


def test_a_run_whose_jvm_is_killed_fills_everything_without_a_persons_help(
    spark: SparkSession, tmp_path: Path, enter: Callable[[Project], Project]
):
    project = enter(new_project(tmp_path / "project", last_day=str(LAST_OF_QUARTER)))
    land_events(spark, project, rows=6_000, days=QUARTER)
    process = started(project, "run")

    said = [line_with("done ", process)]
    wait_for_a_batch(project)
    for pid in java_below(process.pid):
        os.kill(pid, signal.SIGKILL)
    said += process.communicate()[1].splitlines()

    assert process.returncode == 0, "\n".join(said)
    assert [line for line in said if "attempt 2 of 3 in" in line]
    assert "Traceback" not in "\n".join(said)
    lost = [row for row in project.do("batches", "--json").json if row["status"] == "failed"]
    assert {row["failure"] for row in lost} == {"transient"}
    assert all("Spark was lost" in row["error"] for row in lost)
    assert_published(project, oracle.history(project, last=LAST_OF_QUARTER))


def started(project: Project, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(Path(sys.executable).parent / "backfill"), *words],
        cwd=project.folder,
        env={**os.environ, **project.variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def line_with(words: str, process: subprocess.Popen[str]) -> str:
    """Read what a process says up to a line with these words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(words)


def wait_for_a_batch(project: Project) -> None:
    """Wait until a batch is in flight."""
    with closing(sqlite3.connect(project.data / "state.db")) as state:
        while not state.execute("SELECT 1 FROM claims").fetchone():
            time.sleep(0.05)


def java_below(pid: int) -> list[int]:
    """The JVMs that a process has started."""
    listed = ["ps", "-o", "pid=,comm=", "--ppid", str(pid)]
    found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in found.splitlines()]
    return [int(child) for child, name in rows if name == "java"]
