"""S9: a legacy table is adopted without computing it, and migrated with documented differences."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.examples.batches import batches_of
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def expected(script: ModuleType, *, tests: bool) -> dict[object, tuple[int, int]]:
    counted = {
        day: [order["amount"] for order in script.orders_of(day) if tests or not order["is_test"]]
        for day in script.DAYS
    }
    return {day: (len(amounts), sum(amounts)) for day, amounts in counted.items()}


def found(script: ModuleType, project: TemporaryProject) -> dict[object, tuple[int, int]]:
    rows = project.published(script.MODEL).to_pylist()
    return {row["ordered_on"]: (row["orders"], row["revenue"]) for row in rows}


def test_a_legacy_table_is_adopted_as_it_is_and_the_cutover_changes_the_documented_days_alone(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    script.adopted(project)

    legacy = expected(script, tests=True)
    assert found(script, project) == legacy, "what the legacy system said, test orders included"
    assert [batch["reason"] for batch in batches_of(project, script.MODEL)] == ["adopted"]

    plan = script.beside(project)
    assert found(script, project) == legacy, "nothing is published before the cutover"
    script.cut_over(project, plan)
    assert_compared_at_both_ends_of_the_day(project, plan)

    own = expected(script, tests=False)
    assert found(script, project) == own
    differing = tuple(day for day in script.DAYS if legacy[day] != own[day])
    assert differing == script.TESTED_ON
    assert script.WHY in project.do("history", script.MODEL).out
    assert steady(capsys.readouterr().out) == steady(page_of("s09"))


def assert_compared_at_both_ends_of_the_day(project: TemporaryProject, plan: str) -> None:
    """Two comparisons, a day apart, have found the two documented days and nothing that is unexplained."""
    dual = json.loads(project.do("show", plan, "--json").out)["dual_run"]
    since, until = (datetime.fromisoformat(dual[name]) for name in ("since", "until"))
    first, last = (datetime.fromisoformat(each["at"]) for each in dual["compared"])
    assert until - since == timedelta(days=1)
    assert since <= first < until <= last
    for each in dual["compared"]:
        assert not each["refused"]
        assert "2 cells with a difference, all explained by the change, of 60" in str(each["found"])
