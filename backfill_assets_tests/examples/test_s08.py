"""S8: a bug of six weeks is repaired in the affected days only; another definition rebuilds all history, reconciled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.examples.batches import batches_of, days_in
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from datetime import date
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def test_six_weeks_are_repaired_alone_and_the_redefined_history_agrees_with_the_books(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    script.wrong_for_six_weeks(project)
    wrong = revenue(script, project)
    right = by_day(script, net=False)
    days = {day for day, _ in wrong if wrong[day, "EU"] != right[day, "EU"]}
    assert min(days) >= script.FIRST_WRONG
    assert max(days) <= script.LAST_WRONG

    script.repaired(project)

    assert revenue(script, project) == right
    [repair] = [batch for batch in batches_of(project, script.DAILY) if batch["plan_id"]]
    assert days_in([repair]) == [42]
    assert repair["cells"] == "2024-03-04..2024-04-14 (42)"

    plan = script.redefined(project)
    assert revenue(script, project) == right, "nothing is published before the promotion"
    script.reconciled(project, plan)

    assert revenue(script, project) == by_day(script, net=True)
    rows = project.published(script.MONTHLY).to_pylist()
    assert {(row["month_start"], row["region"]): row["revenue"] for row in rows} == (
        script.revenue_of_months(net=True)
    )
    assert len(rows) == 5 * 3
    rebuilt = [batch for batch in batches_of(project, script.DAILY) if batch["plan_id"] == plan]
    assert sum(days_in(rebuilt)) == 152
    assert steady(capsys.readouterr().out) == steady(page_of("s08"))


def revenue(script: ModuleType, project: TemporaryProject) -> dict[tuple[date, str], int]:
    rows = project.published(script.DAILY).to_pylist()
    return {(row["sold_on"], row["region"]): row["revenue"] for row in rows}


def by_day(script: ModuleType, *, net: bool) -> Counter[tuple[date, str]]:
    found: Counter[tuple[date, str]] = Counter()
    for sale in script.sales():
        if not sale["refunded"]:
            worth = sale["amount"] - (sale["shipping"] if net else 0)
            found[sale["sold_on"], sale["region"]] += worth
    return found
