"""S5: a bug of a metric is fixed while a dashboard goes on reading what it is pinned to."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets import published
from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.reading import Published
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL, DASHBOARD = "shop.payments", "payments dashboard"
DAYS = [date(2024, 5, 1) + timedelta(days=number) for number in range(10)]
WRONG = "CAST(minor_units / 100 AS DECIMAL(18, 2)) AS amount"
RIGHT = "CAST(minor_units / IF(unit = 'mill', 1000, 100) AS DECIMAL(18, 2)) AS amount"


def charges() -> list[dict[str, Any]]:
    """Forty payments a day; every eighth is from the app, which counts in thousandths."""
    return [
        {
            "payment_id": day.toordinal() * 100 + number,
            "customer_id": f"c{number * number % (20 + 3 * day.day):02}",
            "minor_units": (1500 + 10 * number + 7 * day.day) * (10 if number % 8 == 0 else 1),
            "unit": "mill" if number % 8 == 0 else "cent",
            "paid_on": day,
        }
        for day in DAYS
        for number in range(40)
    ]


def figures(payments: pa.Table) -> dict[date, tuple[Decimal, int, Decimal, Decimal]]:
    """By day: the total, the number of different customers, the median and the 95th percentile of amounts."""
    amounts, customers = defaultdict(list), defaultdict(set)
    for row in payments.to_pylist():
        amounts[row["paid_on"]].append(row["amount"])
        customers[row["paid_on"]].add(row["customer_id"])
    found = {}
    for day, paid in sorted(amounts.items()):
        parts = quantiles(paid, n=20, method="inclusive")
        found[day] = (sum(paid), len(customers[day]), parts[9], parts[18])
    return found


def dashboard(pinned: Published) -> Decimal:
    """The one number of the dashboard, from what it is pinned to."""
    found = pinned.resolve(MODEL)
    table = DeltaTable(found.path, version=found.delta_version).to_pyarrow_table()
    return sum(table["amount"].to_pylist(), Decimal())


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    pinned = filled(project)
    in_the_sandbox(project)
    plan = planned_for_prod(project)
    compared(project, plan)
    swapped(project, plan, pinned)


def filled(project: TemporaryProject) -> Published:
    """Fill ten days, and pin the dashboard to them."""
    write_deltalake(project.data / "sources/charges", pa.Table.from_pylist(charges()))
    print(
        "# Ten days of payments. The app sends thousandths, which are taken for hundredths: ten times too much.\n"
    )
    print(project.do("run").transcript)
    pinned = published("prod", settings=project.settings)
    print(
        "The dashboard is pinned to what prod publishes now, and shows",
        dashboard(pinned),
        end="\n\n",
    )
    return pinned


def in_the_sandbox(project: TemporaryProject) -> None:
    """Fix it in an environment of its own."""
    print(
        "# The fix is tried in a sandbox, which follows prod and costs nothing where it does not differ.\n"
    )
    print(project.edit("shop/catalog.py", WRONG, RIGHT))
    planned = project.do("plan", "dev_mills", "--reason", "the app counts in thousandths", code=2)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("diff", "prod", "dev_mills", "--by", "unit", code=2).transcript)


def planned_for_prod(project: TemporaryProject) -> str:
    """Plan the same for prod: what the sandbox has built is taken over."""
    print("# It is as intended, so it is planned for prod. Nothing is computed again.\n")
    planned = project.do("plan", "--reason", "the app counts in thousandths", code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    return planned.plan_id


def compared(project: TemporaryProject, plan: str) -> None:
    """Compare day by day what prod reads with what it would."""
    before, after = figures(project.published(MODEL)), figures(project.built(MODEL, plan))
    print("# Before and after, day by day.\n")
    print("day              total            customers        median           p95")
    for day, old in before.items():
        pairs = (f"{one} -> {other}" for one, other in zip(old, after[day], strict=True))
        print(day, *(f"  {pair:15}" for pair in pairs))
    print()


def swapped(project: TemporaryProject, plan: str, pinned: Published) -> None:
    """Hold the dashboard, publish at a quiet time, and let the dashboard go over afterwards."""
    print(
        "# The dashboard is held at what it shows; the plan is to be published on a Sunday night.\n"
    )
    print(project.do("hold", DASHBOARD, "--reason", "the board meets on Friday").transcript)
    print(project.do("promote", plan, "--yes", "--at", "Sun 03:00 Europe/Berlin").transcript)
    print("# The time has come. The sensor would ask for it; here a person does.\n")
    print(project.do("promote", plan, "--yes").transcript)
    print("The dashboard that is still pinned shows ", dashboard(pinned))
    print("The dashboard that is held shows         ", dashboard(read_by_dashboard(project)))
    print(
        "Who reads prod without a hold reads      ",
        dashboard(published("prod", settings=project.settings)),
        end="\n\n",
    )
    print("# The board has met.\n")
    print(project.do("release", DASHBOARD).transcript)
    print(
        "The dashboard shows                      ",
        dashboard(read_by_dashboard(project)),
        end="\n\n",
    )
    print("# The old table is kept for thirty days.\n")
    print(project.do("gc", "--dry-run").transcript)


def read_by_dashboard(project: TemporaryProject) -> Published:
    """What the dashboard reads when it says who it is."""
    return published(consumer=DASHBOARD, settings=project.settings)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
