"""S12: an active customer is one who ordered, no longer one who visited; from the month on that people read."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL = "shop.active_customers"
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(182)]
CUTOFF = "2024-04-01"
OLD = "COUNT(DISTINCT customer_id) AS active"
NEW = "COUNT(DISTINCT IF(ordered, customer_id, NULL)) AS active"


def visits() -> list[dict[str, Any]]:
    """Five visits a day of customers who come and go; every fourth visit ends with an order."""
    return [
        {
            "customer_id": f"c{(day * 7 + visit * 11) % (40 + 5 * DAYS[day].month):03}",
            "ordered": (day // 2 + visit) % 4 == 0,
            "visited_on": DAYS[day],
        }
        for day in range(len(DAYS))
        for visit in range(5)
    ]


def active(*, by_order: bool) -> dict[date, int]:
    """How many different customers visited, or ordered, in each month."""
    customers = defaultdict(set)
    for visit in visits():
        if visit["ordered"] or not by_order:
            customers[visit["visited_on"].replace(day=1)].add(visit["customer_id"])
    return {month: len(found) for month, found in sorted(customers.items())}


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    filled(project)
    redefined(project)
    lifted(project)


def filled(project: TemporaryProject) -> None:
    """Fill six months."""
    write_deltalake(project.data / "sources/visits", pa.Table.from_pylist(visits()))
    print("# Six months by the old definition.\n")
    print(project.do("run").transcript)
    show(project)


def redefined(project: TemporaryProject) -> None:
    """Change the definition from the cutoff on."""
    print(
        "# A customer is active who ordered. The plan sees how far back people read, and proposes less.\n"
    )
    print(project.edit("shop/catalog.py", OLD, NEW))
    print(project.do("plan", code=2).transcript)
    asked = ("--cutoff", CUTOFF, "--reason", "active means: ordered; agreed for the second quarter")
    planned = project.do("plan", *asked, code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("diff", planned.plan_id, code=2).transcript)
    print(project.do("promote", planned.plan_id, "--yes").transcript)
    show(project)
    print(project.do("status").transcript)
    print(project.do("why", MODEL, "2024-03-01").transcript)


def lifted(project: TemporaryProject) -> None:
    """Later the older months get the new definition as well."""
    print("# Later: the older months as well.\n")
    planned = project.do(
        "plan", "--lift-cutoff", MODEL, "--reason", "one definition for the year", code=2
    )
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("promote", planned.plan_id, "--yes").transcript)
    show(project)


def show(project: TemporaryProject) -> None:
    """Print what is published."""
    rows = sorted(project.published(MODEL).to_pylist(), key=lambda row: row["month_start"])
    print("  ".join(f"{row['month_start']:%Y-%m}: {row['active']}" for row in rows), end="\n\n")


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
