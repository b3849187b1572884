"""S4: the gross margin of three months, at the costs that were valid on the order date, one month at a time."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.examples.batches import batches_of, most_at_once
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def expected(script: ModuleType) -> dict[int, tuple[object, Decimal, Decimal]]:
    """By order: its day, its price, and the cost that was valid on that day."""
    items = list(script.PRICES)
    sold = [(day, number, items[number % 3]) for day in script.DAYS for number in range(10)]
    return {
        day.toordinal() * 100 + number: (
            day,
            script.PRICES[item],
            (script.BEFORE if day < script.RISE else script.AFTER)[item],
        )
        for day, number, item in sold
    }


def test_each_order_has_the_cost_that_was_valid_on_its_day_and_months_are_built_one_at_a_time(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    script.refused(project)
    months = {row["ordered_on"].month for row in project.published(script.MODEL).to_pylist()}
    assert months == {1, 2}, "March is held back by its audits, the months before it are published"

    script.corrected(project)

    rows = project.published(script.MODEL).to_pylist()
    found = {row["order_id"]: (row["ordered_on"], row["revenue"], row["cost"]) for row in rows}
    assert len(rows) == len(found) == 91 * 10
    assert found == expected(script)
    for row in rows:
        assert row["revenue"] >= row["cost"] >= 0
        assert 0 <= row["margin"] <= Decimal("1.5")
        share = (row["revenue"] - row["cost"]) / row["revenue"]
        assert row["margin"] == share.quantize(Decimal("0.0001"))
    batches = batches_of(project, script.MODEL)
    filled, planned = ["2024-01-01", "2024-02-01", "2024-03-01"], ["2024-01-01", "2024-02-01"]
    assert [batch["cells"] for batch in batches] == [*filled, *planned]
    assert most_at_once(batches) == 1
    output = capsys.readouterr().out
    assert "2024-01-01..2024-02-01 (2); 0 of 2 cells differ" in output, (
        "a corrected cost changes no month in which it was not valid"
    )
    assert steady(output) == steady(page_of("s04"))
