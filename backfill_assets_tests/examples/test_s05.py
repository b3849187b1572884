"""S5: a bug of a metric is fixed without breaking dashboards."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets import resolve
from backfill_assets.cli import project as cli_project
from backfill_assets_tests.examples.batches import batches_of
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def total(script: ModuleType, mills: int) -> Decimal:
    worth = {"mill": Decimal(1) / mills, "cent": Decimal(1) / 100}
    paid = (charge["minor_units"] * worth[charge["unit"]] for charge in script.charges())
    return sum(paid, Decimal())


def test_a_held_dashboard_reads_the_old_numbers_until_it_is_released(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    wrong, right = total(script, 100), total(script, 1000)
    pinned = script.filled(project)
    assert script.dashboard(pinned) == wrong
    old, _ = resolve(script.MODEL, settings=project.settings)

    script.in_the_sandbox(project)
    assert sum(project.published(script.MODEL, "dev_mills")["amount"].to_pylist()) == right
    assert sum(project.published(script.MODEL)["amount"].to_pylist()) == wrong

    plan = script.planned_for_prod(project)
    assert not [batch for batch in batches_of(project, script.MODEL) if batch["plan_id"] == plan]
    before = script.figures(project.published(script.MODEL))
    after = script.figures(project.built(script.MODEL, plan))
    assert list(before) == list(after) == script.DAYS
    for day in script.DAYS:
        assert before[day][0] > after[day][0], "the totals of every day were too high"
        assert before[day][1] == after[day][1], "no customer comes or goes"
        assert before[day][3] > after[day][3], "the 95th percentile was one of the app's"
    script.compared(project, plan)
    script.swapped(project, plan, pinned)

    assert script.dashboard(pinned) == wrong
    assert script.dashboard(script.read_by_dashboard(project)) == right
    assert sum(project.published(script.MODEL)["amount"].to_pylist()) == right
    assert f"The dashboard that is held shows          {wrong}" in page_of("s05")
    assert f"Who reads prod without a hold reads       {right:.2f}" in page_of("s05")
    assert steady(capsys.readouterr().out) == steady(page_of("s05"))
    assert_kept_for_thirty_days(project, old)


def assert_kept_for_thirty_days(project: TemporaryProject, table: str) -> None:
    """The old table is not collected for thirty days, and then it is."""
    real = cli_project.now
    for days, kept in ((29, True), (31, False)):
        with pytest.MonkeyPatch.context() as patch:
            ahead = timedelta(days=days)
            patch.setattr(cli_project, "now", lambda ahead=ahead: real() + ahead)
            project.do("gc", "--yes")
        assert Path(table).is_dir() is kept
