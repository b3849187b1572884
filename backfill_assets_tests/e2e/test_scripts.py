"""What scripts and CI call: their exit codes, and what is kept when they fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.e2e.server import BIN, CHECKOUT, DEFINITIONS
from backfill_assets_tests.planting import plant, publish_head, sell
from backfill_assets_tests.toy import DAYS, raw_returns

if TYPE_CHECKING:
    import subprocess

    from backfill_assets_tests.e2e.server import Project

pytestmark = [pytest.mark.e2e, pytest.mark.spark]


def materialize(project: Project, model: str, *days: str) -> subprocess.CompletedProcess[str]:
    return project.run(str(CHECKOUT / "scripts" / "materialize_range.sh"), model, *days)


def missing(project: Project, model: str) -> str:
    done = project.backfill("status", "--select", model, "--json")
    [row] = json.loads(done.stdout)["models"]
    return row["missing_ranges"]


def test_a_range_is_filled_by_one_command_and_ci_stops_at_what_is_planted_afterwards(
    project: Project,
):
    done = materialize(project, "toy.sales", DAYS[0], DAYS[-1])

    assert done.returncode == 0, done.stderr
    assert missing(project, "toy.sales") == "none"

    plant(project.data_root, "toy.sales", "2024-01-29")
    publish_head(project.data_root, "toy.sales")
    job = project.run(str(BIN / "dagster"), "job", "execute", "-m", DEFINITIONS, "-j", "audits")

    assert job.returncode == 1
    assert "published_amount_not_negative" in job.stdout + job.stderr


@pytest.mark.story
def test_a_failing_audit_ends_with_1_and_keeps_the_good_batches(project: Project):
    sell(project.data_root, raw_returns, "2024-02-02", -1000)

    done = materialize(project, "toy.returns", DAYS[0], DAYS[-1])

    assert done.returncode == 1
    assert missing(project, "toy.returns") == "2024-02-01..2024-02-02 (2)"


def test_a_reversed_range_ends_with_1_before_anything_starts(project: Project):
    done = materialize(project, "toy.returns", DAYS[-1], DAYS[0])

    assert done.returncode == 1
    assert "Reversed range" in done.stderr
    assert not (Path(project.data_root) / "state.db").exists()
