"""S4: the gross margin of three months, each order at the cost that was valid on its day, month by month."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL = "shop.gross_margin"
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(91)]
PRICES = {"espresso": Decimal("3.00"), "jaffle": Decimal("11.00"), "lime soda": Decimal("4.00")}
RISE = date(2024, 2, 10)
"""From this day on everything costs more."""
BEFORE = {"espresso": Decimal("0.90"), "jaffle": Decimal("4.40"), "lime soda": Decimal("1.00")}
AFTER = {"espresso": Decimal("1.20"), "jaffle": Decimal("5.50"), "lime soda": Decimal("1.50")}
MISTYPED = date(2024, 3, 5)
"""From this day on a jaffle cost ten times as much, as somebody typed."""


def land_orders(project: TemporaryProject) -> None:
    """Land ten orders a day."""
    items = list(PRICES)
    sold = [
        {
            "order_id": day.toordinal() * 100 + number,
            "item_id": items[number % 3],
            "revenue": PRICES[items[number % 3]],
            "ordered_on": day,
        }
        for day in DAYS
        for number in range(10)
    ]
    schema = [("revenue", pa.decimal128(18, 2)), ("ordered_on", pa.date32())]
    columns = pa.schema([("order_id", pa.int64()), ("item_id", pa.string()), *schema])
    write_deltalake(project.data / "sources/orders", pa.Table.from_pylist(sold, columns))


def land_costs(project: TemporaryProject, *, mistyped: bool) -> None:
    """Land the costs with the days from which and until which they are valid."""
    costs = [
        {"item_id": item, "cost": cost, "effective_from": since, "effective_to": until}
        for costs, since, until in ((BEFORE, DAYS[0], RISE), (AFTER, RISE, None))
        for item, cost in costs.items()
    ]
    if mistyped:
        right = costs[-2]
        wrong = {**right, "cost": right["cost"] * 10, "effective_from": MISTYPED}
        costs[-2:-1] = [{**right, "effective_to": MISTYPED}, wrong]
    dates = [("effective_from", pa.date32()), ("effective_to", pa.date32())]
    columns = pa.schema([("item_id", pa.string()), ("cost", pa.decimal128(18, 2)), *dates])
    table = pa.Table.from_pylist(costs, columns)
    write_deltalake(project.data / "sources/costs", table, mode="overwrite")


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    refused(project)
    corrected(project)


def refused(project: TemporaryProject) -> None:
    """Fill three months while one cost is mistyped."""
    land_orders(project)
    land_costs(project, mistyped=True)
    print(
        "# Three months, one at a time. In March a cost was mistyped, and the audits hold March back.\n"
    )
    print(project.do("run", code=1).transcript)
    print(project.do("status").transcript)


def corrected(project: TemporaryProject) -> None:
    """Correct the cost, and fill what is left."""
    land_costs(project, mistyped=False)
    print("# The cost is corrected. The same command does what is left.\n")
    print(project.do("run", code=3).transcript)
    print(
        "# January and February were built with the costs as they were before the correction: a person decides.\n"
    )
    planned = project.do("plan", "--reason", "a cost of March was corrected", code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("promote", planned.plan_id, "--yes").transcript)

    print("# The month before the rise, that of the rise, and the month after it.\n")
    sold = project.published(MODEL).to_pylist()
    for month in (1, 2, 3):
        of_month = [row for row in sold if row["ordered_on"].month == month]
        revenue, cost = (sum(row[name] for row in of_month) for name in ("revenue", "cost"))
        margin = (revenue - cost) / revenue
        print(
            f"2024-{month:02}: {len(of_month)} orders, revenue {revenue}, cost {cost}, margin {margin:.4f}"
        )
    print()
    print(project.do("audit").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
