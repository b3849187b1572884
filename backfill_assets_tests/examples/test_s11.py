"""S11: customer_segment is enriched over all history while dashboards stay online."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def segment(spent: int) -> str:
    return "gold" if spent >= 500 else "silver" if spent >= 100 else "new"


def test_a_dashboard_sees_the_old_history_then_the_new_one_and_never_an_error(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    dashboard = script.tell(project)

    rows = 182 * script.CUSTOMERS
    old = ("seen_on", "customer_id", "segment")
    new = (*old, "spent", "average_order")
    assert dashboard.errors == []
    assert dashboard.looks > 2  # before, after, and between
    assert dashboard.seen == [(old, rows, rows), (new, rows, rows)]
    found = {
        (row["seen_on"], row["customer_id"]): (row["segment"], row["spent"], row["average_order"])
        for row in project.published(script.MODEL).to_pylist()
    }
    assert found == {
        (row["seen_on"], row["customer_id"]): (
            segment(row["spent"]),
            row["spent"],
            rounded(row["spent"], row["orders"]),
        )
        for row in script.spending()
    }
    assert steady(capsys.readouterr().out) == steady(page_of("s11"))


def rounded(spent: int, orders: int) -> Decimal | None:
    return (Decimal(spent) / orders).quantize(Decimal("0.01"), "ROUND_HALF_UP") if orders else None
