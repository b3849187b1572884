"""S9: a legacy table is adopted without computing it; then it is computed beside, and cut over with known differences."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets.testing import shared_spark, temporary_project, time_passed

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL = "shop.orders_daily"
DAYS = [date(2024, 4, 1) + timedelta(days=number) for number in range(60)]
TESTED_ON = (date(2024, 4, 17), date(2024, 5, 8))
"""On these days the till was tested, and the legacy system counted the tests as orders."""
WHY = "the legacy system counted test orders on 2024-04-17 and 2024-05-08; agreed with finance"


def orders_of(day: date) -> list[dict[str, Any]]:
    """Ten orders a day, and three of a test on two of the days."""
    tests = 3 if day in TESTED_ON else 0
    return [
        {
            "order_id": day.toordinal() * 100 + number,
            "amount": 1000 + number + day.day,
            "is_test": number >= 10,
            "ordered_on": day,
        }
        for number in range(10 + tests)
    ]


def land(project: TemporaryProject) -> None:
    """Land the orders, and the table that the legacy system has kept of them."""
    days = [orders_of(day) for day in DAYS]
    rows = [order for orders in days for order in orders]
    write_deltalake(project.data / "sources/orders", pa.Table.from_pylist(rows))
    legacy = pa.table(
        {
            "ordered_on": DAYS,
            "orders": [len(orders) for orders in days],
            "revenue": [sum(order["amount"] for order in orders) for orders in days],
        }
    )
    broken = legacy["revenue"].to_pylist()
    broken[4] = -1
    write_deltalake("legacy/orders_daily", legacy.set_column(2, "revenue", [broken]))


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    adopted(project)
    plan = beside(project)
    cut_over(project, plan)


def adopted(project: TemporaryProject) -> None:
    """Audit the legacy table, correct what is wrong in it, and record its days."""
    land(project)
    print("# The legacy table, held against the model's audits: one day has a revenue of -1.\n")
    print(project.do("adopt", "legacy/orders_daily", MODEL, "--dry-run", code=1).transcript)
    right = sum(order["amount"] for order in orders_of(DAYS[4]))
    DeltaTable("legacy/orders_daily").update(predicate="revenue < 0", new_values={"revenue": right})
    print(
        "# The legacy system corrects it. The days are recorded as they are; nothing is computed.\n"
    )
    print(project.do("adopt", "legacy/orders_daily", MODEL, "--yes").transcript)
    print(project.do("why", MODEL, str(TESTED_ON[0])).transcript)


def beside(project: TemporaryProject) -> str:
    """Compute all days from the orders, beside the adopted ones, and keep both for a day."""
    print(
        "# All days are computed from the orders, beside the adopted ones, and both are kept for a day.\n"
    )
    asked = ("--restate", MODEL, "--strategy", f"{MODEL}=dual-run", "--dual-run", "1")
    planned = project.do("plan", *asked, "--reason", WHY, code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print("# Two days differ, and these are the documented ones.\n")
    print(project.do("diff", planned.plan_id, code=2).transcript)
    print("# Until the day is over the legacy numbers are authoritative.\n")
    print(project.do("promote", planned.plan_id, "--yes", code=1).transcript)
    return planned.plan_id


def cut_over(project: TemporaryProject, plan: str) -> None:
    """Compare both once more when the day is over, and publish what was computed."""
    print("# A day later, by the clock of the project, both are compared once more.\n")
    with time_passed(timedelta(days=1)):
        print(project.do("apply", plan).transcript)
        print(project.do("promote", plan, "--yes", "--reason", WHY).transcript)
    print(project.do("history", MODEL, f"{TESTED_ON[0]}").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
