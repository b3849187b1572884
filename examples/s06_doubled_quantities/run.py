"""S6: for four days the tills sent every line twice, so quantities are doubled; exactly those days are repaired."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
DAYS = [date(2024, 3, 4) + timedelta(days=number) for number in range(14)]
SENT_TWICE = DAYS[6:10]  # 10 to 13 March
ITEMS = ("espresso", "jaffle", "lime soda")
AUDIT = '"shop.till_totals", "pieces", tolerance=0.01'


def lines_of(day: date) -> list[tuple[int, str, int, date]]:
    """What the tills sold on a day: 12 orders of up to three items."""
    orders = range(12)
    return [
        (day.toordinal() * 100 + order, item, 1 + (order + number) % 3, day)
        for order in orders
        for number, item in enumerate(ITEMS[: 1 + order % 3])
    ]


def land(project: TemporaryProject, *, sent_twice: list[date]) -> None:
    """Land all lines, those of some days twice, and what the tills counted."""
    lines = [line for day in DAYS for line in lines_of(day) * (1 + (day in sent_twice))]
    columns = zip(
        ("order_id", "item_id", "quantity", "ordered_on"), zip(*lines, strict=True), strict=True
    )
    write_deltalake(project.data / "sources/lines", pa.table(dict(columns)), mode="overwrite")


def land_totals(project: TemporaryProject) -> None:
    """Land what the tills counted at closing time."""
    pieces = [sum(quantity for _, _, quantity, _ in lines_of(day)) for day in DAYS]
    totals = pa.table({"closed_on": DAYS, "pieces": pieces})
    write_deltalake(project.data / "sources/till_totals", totals)


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    doubled(project)
    repaired(project)


def doubled(project: TemporaryProject) -> None:
    """Fill the history while the lines of four days are there twice."""
    land_totals(project)
    land(project, sent_twice=SENT_TWICE)
    print("# The history is filled. The tills' totals only warn, and nobody looks.\n")
    print(project.do("run").transcript)

    print("# A person asks: do the published days agree with the tills?\n")
    print(project.do("audit").transcript)


def repaired(project: TemporaryProject) -> None:
    """Build these days again, compare, publish."""
    print("# The tills take the second deliveries back. From now on the totals block.\n")
    land(project, sent_twice=[])
    print(project.edit("shop/catalog.py", f"{AUDIT}, warn=True", AUDIT))
    span = f"{SENT_TWICE[0]}..{SENT_TWICE[-1]}"
    planned = project.do(
        "plan", "--restate", f"shop.lines:{span}", "--reason", "lines were sent twice", code=2
    )
    print(planned.transcript)
    plan = planned.plan_id
    print(project.do("apply", plan).transcript)
    print(project.do("diff", plan, code=2).transcript)
    print(project.do("promote", plan, "--yes").transcript)

    print("# What was repaired, and what was left alone.\n")
    print(project.do("audit").transcript)
    print(project.do("status").transcript)
    print(project.do("history", "shop.fact_order_items", span).transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
