"""S6: quantities doubled for four days are repaired, exactly those."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable

from backfill_assets import resolve
from backfill_assets.testing import assert_plan
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]

ITEMS = "shop.fact_order_items"
WORKFLOW = Path(__file__).parents[2] / "docs" / "examples" / "pull-request-workflow.yml"


def quantities(project: TemporaryProject) -> Counter[object]:
    found: Counter[object] = Counter()
    for row in project.published(ITEMS).to_pylist():
        assert row["quantity"] >= 0
        found[row["ordered_on"]] += row["quantity"]
    return found


def files_by_day(project: TemporaryProject) -> dict[str, list[str]]:
    """The files of each cell that prod reads, by their names."""
    path, version = resolve(ITEMS, settings=project.settings)
    added = pa.table(DeltaTable(path, version=version).get_add_actions(flatten=True)).to_pylist()
    files: dict[str, list[str]] = {}
    for file in added:
        files.setdefault(str(file["partition._cell"]), []).append(file["path"])
    return files


def test_exactly_the_doubled_days_are_repaired_and_their_neighbours_keep_their_files(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    script.doubled(project)
    assert sum(quantities(project).values()) == 18 * 48  # 14 days, 4 of them twice
    before = files_by_day(project)

    script.repaired(project)

    assert quantities(project) == dict.fromkeys(script.DAYS, 48)
    after = files_by_day(project)
    repaired = {str(day) for day in script.SENT_TWICE}
    assert {day for day in after if after[day] != before[day]} == repaired
    assert len(repaired) == 4
    assert project.published(ITEMS).num_rows == 14 * 24
    assert steady(capsys.readouterr().out) == steady(page_of("s06"))


def test_the_plan_holds_the_four_days_and_no_other(script: ModuleType, project: TemporaryProject):
    script.land_totals(project)
    script.land(project, sent_twice=script.SENT_TWICE)
    project.do("run")
    script.land(project, sent_twice=[])

    plan = project.plan("--restate", "shop.lines:2024-03-10..2024-03-13")

    days = "2024-03-10..2024-03-13"
    assert_plan(plan, change={}, categories={}, cells={ITEMS: days, "shop.pieces_daily": days})


def test_a_repair_that_loses_more_than_one_row_in_a_hundred_is_refused(
    script: ModuleType, project: TemporaryProject, monkeypatch: pytest.MonkeyPatch
):
    script.land_totals(project)
    script.land(project, sent_twice=script.SENT_TWICE)
    project.do("run")
    usual = script.lines_of
    monkeypatch.setattr(script, "lines_of", lambda day: usual(day)[:-1])  # 23 of 24 rows a day
    script.land(project, sent_twice=[])

    plan = project.plan("--restate", "shop.lines:2024-03-10..2024-03-13")
    refused = project.do("apply", plan.plan_id, code=1)

    assert "row_count_within" in refused.said
    assert sum(quantities(project).values()) == 18 * 48


def test_the_pull_request_workflow_plans_builds_and_writes_one_comment(
    script: ModuleType, project: TemporaryProject
):
    script.doubled(project)
    project.edit("shop/catalog.py", "SUM(quantity) AS pieces", "SUM(quantity) + 1 AS pieces")
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    outputs = project.folder / "outputs"
    given = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "REASON": "pull request 7",
        "GITHUB_OUTPUT": str(outputs),
    }

    for step in workflow["jobs"]["plan"]["steps"]:
        if step.get("shell") == "bash":
            command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    assert outputs.read_text(encoding="utf-8") == "changes=2\n"
    comment = Path("comment.md").read_text(encoding="utf-8")
    assert "| shop.pieces\\_daily | 14 of 14 | 14 | 0 | 0 |" in comment
    assert "**Built, not published." in comment
    assert "pull request 7" in Path("report.html").read_text(encoding="utf-8")
