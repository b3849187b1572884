"""S12: monthly active customers are redefined."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.examples.batches import batches_of
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def found(script: ModuleType, project: TemporaryProject) -> dict[date, int]:
    rows = project.published(script.MODEL).to_pylist()
    return {row["month_start"]: row["active"] for row in rows}


def test_the_months_that_people_read_are_redefined_and_the_boundary_is_shown_until_it_is_lifted(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    by_visit, by_order = script.active(by_order=False), script.active(by_order=True)
    assert len(by_visit) == 6
    assert all(by_order[month] < by_visit[month] for month in by_visit)

    script.filled(project)
    assert found(script, project) == by_visit

    script.redefined(project)
    since = date.fromisoformat(script.CUTOFF)
    assert found(script, project) == {
        month: (by_visit if month < since else by_order)[month] for month in by_visit
    }
    assert f"before {since} its cells keep the old definition" in project.do("status").said

    script.lifted(project)
    assert found(script, project) == by_order
    assert "keep the old definition" not in project.do("status").said
    built = [batch["cells"] for batch in batches_of(project, script.MODEL) if batch["plan_id"]]
    assert built == ["2024-04-01..2024-06-01 (3)", "2024-01-01..2024-03-01 (3)"]
    assert steady(capsys.readouterr().out) == steady(page_of("s12"))
