"""S10: ninety days of revenue are recomputed after the pricing logic has changed; and the way back."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL, WEEKLY = "shop.revenue", "shop.revenue_weekly"
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(90)]
BEFORE = "list_price * (100 - discount_percent) DIV 100 - coupon"
AFTER = "(list_price - coupon) * (100 - discount_percent) DIV 100"


def sales_of(day: date) -> list[dict[str, Any]]:
    """What was sold on a day: fifteen sales, some with a discount, some with a coupon."""
    return [
        {
            "sale_id": day.toordinal() * 100 + number,
            "list_price": 2000 + 100 * number,
            "discount_percent": (0, 10, 25)[number % 3],
            "coupon": (0, 500)[number % 2],
            "sold_on": day,
        }
        for number in range(15)
    ]


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    filled(project)
    plan = recomputed(project)
    taken_back(project, plan)


def filled(project: TemporaryProject) -> None:
    """Fill ninety days with the old logic."""
    rows = [sale for day in DAYS for sale in sales_of(day)]
    write_deltalake(project.data / "sources/sales", pa.Table.from_pylist(rows))
    print("# Ninety days, and the weeks over them.\n")
    print(project.do("run").transcript)


def recomputed(project: TemporaryProject) -> str:
    """Let a coupon count before the discount, in all ninety days."""
    print("# A coupon is taken off before the discount now, not after it.\n")
    print(project.edit("shop/catalog.py", BEFORE, AFTER))
    planned = project.do("plan", "--reason", "coupons before discounts", code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("diff", planned.plan_id, WEEKLY, code=2).transcript)
    print(project.do("promote", planned.plan_id, "--yes").transcript)
    return planned.plan_id


def taken_back(project: TemporaryProject, plan: str) -> None:
    """Take it back: pointers move, nothing is computed."""
    print("# Finance has second thoughts.\n")
    print(project.do("rollback", plan, "--yes", "--reason", "agreed otherwise").transcript)
    print("# And third ones: what was built is still there.\n")
    again = project.do("plan", "--reason", "coupons before discounts, after all", code=2)
    print(again.transcript)
    print(project.do("apply", again.plan_id).transcript)
    print(project.do("promote", again.plan_id, "--yes").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
