"""S8: a bug of six weeks is repaired where it was at work; then the definition changes for all history."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
DAILY, MONTHLY = "shop.daily_revenue", "shop.monthly_revenue"
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(152)]
REGIONS = ("EU", "US", "APAC")
LAST_GOOD, FIRST_WRONG, LAST_WRONG = date(2024, 3, 3), date(2024, 3, 4), date(2024, 4, 14)
"""Six weeks, from a Monday to a Sunday."""
RULE, BUG = "          AND NOT refunded\n", ""
GROSS, NET = "SUM(amount) AS revenue", "SUM(amount - shipping) AS revenue"


def sales() -> list[dict[str, Any]]:
    """What was sold: two sales a day and region, of which every seventh was refunded."""
    pairs = [(day, region) for day in DAYS for region in REGIONS for _ in range(2)]
    return [
        {
            "sale_id": number,
            "region": region,
            "amount": 1000 + number % 97,
            "shipping": 50 + number % 5,
            "refunded": number % 7 == 0,
            "sold_on": day,
        }
        for number, (day, region) in enumerate(pairs)
    ]


def revenue_of_months(*, net: bool) -> Counter[tuple[date, str]]:
    """What the books of finance say, by month and region; kept apart from the models."""
    books: Counter[tuple[date, str]] = Counter()
    for sale in sales():
        if not sale["refunded"]:
            worth = sale["amount"] - (sale["shipping"] if net else 0)
            books[sale["sold_on"].replace(day=1), sale["region"]] += worth
    return books


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    wrong_for_six_weeks(project)
    repaired(project)
    plan = redefined(project)
    reconciled(project, plan)


def wrong_for_six_weeks(project: TemporaryProject) -> None:
    """Fill until 3 March, bring the bug in, and fill six more weeks with it."""
    write_deltalake(project.data / "sources/sales", pa.Table.from_pylist(sales()))
    print("# Until 3 March all is well.\n")
    print(project.do("run", "--select", DAILY, "--end", str(LAST_GOOD)).transcript)
    print("# An edit, meant as a clean-up, loses a condition: refunds count from now on.\n")
    print(project.edit("shop/catalog.py", RULE, BUG))
    asked = ("--select", DAILY, "--end", str(LAST_GOOD), "--forward-only", "--reason", "a clean-up")
    planned = project.do("plan", *asked, code=2)
    project.do("apply", planned.plan_id)
    print(project.do("promote", planned.plan_id, "--yes").transcript)
    print("# Six weeks go by.\n")
    print(project.do("run", "--select", DAILY, "--end", str(LAST_WRONG)).transcript)


def repaired(project: TemporaryProject) -> None:
    """Correct the code, and build the six weeks again that it had built."""
    print(
        "# The condition is back, and counts from the day on which it was lost. No earlier day is touched.\n"
    )
    print(
        project.edit(
            "shop/catalog.py",
            "sold_on < :end_ds\n        GROUP BY sold_on",
            f"sold_on < :end_ds\n{RULE}        GROUP BY sold_on",
        )
    )
    since = ("--forward-only", "--effective-from", str(FIRST_WRONG))
    asked = (
        "--select",
        DAILY,
        "--end",
        str(LAST_WRONG),
        *since,
        "--reason",
        "refunds were counted for six weeks",
    )
    planned = project.do("plan", *asked, code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("diff", planned.plan_id, "--by", "region", code=2).transcript)
    print(project.do("promote", planned.plan_id, "--yes").transcript)
    print("# The rest of the history, and the months.\n")
    print(project.do("run").transcript)


def redefined(project: TemporaryProject) -> str:
    """Take shipping out of revenue, over all history, in a table of its own."""
    print("# Finance redefines revenue: without shipping, in all history.\n")
    print(project.edit("shop/catalog.py", GROSS, NET))
    planned = project.do("plan", "--reason", "revenue without shipping", code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("diff", planned.plan_id, MONTHLY, "--by", "region", code=2).transcript)
    return planned.plan_id


def reconciled(project: TemporaryProject, plan: str) -> None:
    """Hold what was built against the books, by month and region; then publish it."""
    print("# What was built, against the books of finance, by month and region.\n")
    built = {
        (row["month_start"], row["region"]): row["revenue"]
        for row in project.built(MONTHLY, plan).to_pylist()
    }
    for (month, region), booked in sorted(revenue_of_months(net=True).items()):
        print(f"{month:%Y-%m}  {region:4}  books {booked:>7,}  built {built[month, region]:>7,}")
    print()
    print(project.do("promote", plan, "--yes").transcript)
    print(project.do("audit").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
