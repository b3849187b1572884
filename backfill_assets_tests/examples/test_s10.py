"""S10: ninety days of revenue are recomputed after a change of the pricing logic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets import resolve
from backfill_assets_tests.examples.batches import batches_of, days_in
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]

SALES_WEEKLY = "shop.sales_weekly"


def old(list_price: int, percent: int, coupon: int) -> int:
    return list_price * (100 - percent) // 100 - coupon


def new(list_price: int, percent: int, coupon: int) -> int:
    return (list_price - coupon) * (100 - percent) // 100


def test_ninety_days_are_recomputed_published_at_once_and_taken_back(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    script.filled(project)
    assert revenue(script, project) == expected(script, old)
    untouched = resolve(SALES_WEEKLY, settings=project.settings)

    plan = script.recomputed(project)

    assert revenue(script, project) == expected(script, new)
    built = [batch for batch in batches_of(project, script.MODEL) if batch["plan_id"] == plan]
    assert days_in(built) == [30, 30, 30]
    weeks = project.published(script.WEEKLY).to_pylist()
    days = expected(script, new)
    assert len(weeks) == 12
    for week in weeks:
        first = week["week_start"].toordinal()
        of_week = [worth for day, worth in days.items() if first <= day.toordinal() < first + 7]
        assert week["revenue"] == sum(of_week)
    assert resolve(SALES_WEEKLY, settings=project.settings) == untouched
    assert not [batch for batch in batches_of(project, SALES_WEEKLY) if batch["plan_id"]]

    script.taken_back(project, plan)

    assert revenue(script, project) == expected(script, new)
    assert len(batches_of(project, script.MODEL)) == 3 + 3, "no day was computed a second time"
    output = capsys.readouterr().out
    assert "is rolled back, 3 models" in output
    assert steady(output) == steady(page_of("s10"))


def revenue(script: ModuleType, project: TemporaryProject) -> dict[object, int]:
    rows = project.published(script.MODEL).to_pylist()
    assert len(rows) == 90
    return {row["sold_on"]: row["revenue"] for row in rows}


def expected(script: ModuleType, worth: Callable[..., int]) -> dict[Any, int]:
    names = ("list_price", "discount_percent", "coupon")
    return {
        day: sum(worth(*(sale[name] for name in names)) for sale in script.sales_of(day))
        for day in script.DAYS
    }
