from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "marketing.campaign_performance"


@pytest.fixture
def programs(program: Callable[[str, str], Path]) -> Path:
    """The commands that the script starts; `dagster` prints how it was called."""
    program("python", f'exec "{sys.executable}" "$@"')
    program(
        "backfill",
        f'[ "$3" = {MODEL} ] || {{ echo "unknown model $3" >&2; exit 1; }}; echo "{{}}"',
    )
    return program("dagster", 'echo "$@"').parent


def materialize(root: Path, programs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(root / "scripts" / "materialize_range.sh"), *words],
        env={"PATH": os.defpath, "BACKFILL_BIN": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_good_range_is_handed_to_dagster_in_one_call(root: Path, programs: Path):
    done = materialize(root, programs, MODEL, "2024-01-01", "2024-01-31")

    assert done.returncode == 0
    assert done.stdout.split() == [
        *("asset", "materialize", "-m", "backfill_assets.orchestration.definitions"),
        *("--select", "marketing/campaign_performance"),
        *("--partition-range", "2024-01-01...2024-01-31"),
    ]


@pytest.mark.parametrize("key", ["2024-01-31", "2024-01-31-13:00"])
def test_one_cell_is_a_range(root: Path, programs: Path, key: str):
    done = materialize(root, programs, MODEL, key, key)

    assert done.returncode == 0
    assert done.stdout.split()[-1] == f"{key}...{key}"


def test_the_exit_code_is_that_of_dagster(
    root: Path, programs: Path, program: Callable[[str, str], Path]
):
    program("dagster", "exit 1")

    done = materialize(root, programs, MODEL, "2024-01-01", "2024-01-31")

    assert done.returncode == 1


@pytest.mark.parametrize(("looked", "code"), [(0, 0), (3, 0), (1, 1), (2, 1), (130, 1)])
def test_a_source_that_only_spark_can_judge_is_left_to_the_run(
    root: Path, programs: Path, program: Callable[[str, str], Path], looked: int, code: int
):
    """3 is how `backfill status` ends then; every other failure of it is one of the model."""
    program("backfill", f"exit {looked}")

    done = materialize(root, programs, MODEL, "2024-01-01", "2024-01-31")

    assert done.returncode == code
    assert ("can't be filled" in done.stderr) == (code == 1)
    assert bool(done.stdout) == (code == 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((MODEL, "2024-01-31", "2024-01-01"), "Reversed range: START '2024-01-31' is after END"),
        ((MODEL, "2024-02-30", "2024-03-01"), "START is '2024-02-30'; expected a partition key"),
        ((MODEL, "2024-01-01", "2024-1-5"), "END is '2024-1-5'; expected a partition key"),
        ((MODEL, "2024-01-01", "2024-01-02-00:00"), "keys of different cadences"),
        ((MODEL, "2024-01-01"), "Usage: scripts/materialize_range.sh MODEL START END"),
        (("no.such", "2024-01-01", "2024-01-02"), "Model 'no.such' can't be filled"),
    ],
)
def test_a_bad_range_or_model_ends_with_1_before_dagster_starts(
    root: Path, programs: Path, words: tuple[str, ...], message: str
):
    done = materialize(root, programs, *words)

    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""
