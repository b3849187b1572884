"""S11: all history of `customer_segment` gets two columns while dashboards read it all the time."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets import resolve
from backfill_assets.testing import shared_spark, temporary_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL = "shop.customer_segment"
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(182)]
CUSTOMERS = 12
OLD = "ELSE 'new' END AS segment\n"
NEW = """ELSE 'new' END AS segment,
          spent,
          CAST(spent / NULLIF(orders, 0) AS DECIMAL(18, 2)) AS average_order
"""
DECLARED = '        Column("segment", "string"),\n'
WIDER = """        Column("segment", "string"),
        Column("spent", "bigint", nullable=False),
        Column("average_order", "decimal(18,2)"),
"""


def spending() -> list[dict[str, Any]]:
    """What each customer has spent until each day; one of them has not ordered yet."""
    return [
        {
            "customer_id": f"c{number:02}",
            "spent": 0 if number == 0 else 4 * number * (1 + day),
            "orders": 0 if number == 0 else 1 + day // 7,
            "seen_on": DAYS[day],
        }
        for day in range(len(DAYS))
        for number in range(CUSTOMERS)
    ]


@dataclass
class Dashboard:
    """Reads what prod publishes, again and again, and notes what it saw.

    Attributes:
        project: whose prod.
        seen: each different state in the order in which it was seen: columns, rows, rows with a segment.
        errors: whatever went wrong.
        looks: how often it looked.
    """

    project: TemporaryProject
    seen: list[tuple[tuple[str, ...], int, int]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    looks: int = 0

    def look(self) -> None:
        """Look once."""
        try:
            path, version = resolve(MODEL, settings=self.project.settings)
            table = DeltaTable(path, version=version).to_pyarrow_table().drop_columns("_cell")
        except Exception as error:  # noqa: BLE001 - a dashboard must never see one
            self.errors.append(repr(error))
            return
        self.looks += 1
        filled = table.num_rows - table["segment"].null_count
        state = (tuple(table.column_names), table.num_rows, filled)
        if not self.seen or self.seen[-1] != state:
            self.seen.append(state)

    @contextmanager
    def stays_open(self) -> Iterator[None]:
        """Look all the time until the block ends."""
        closed = threading.Event()

        def looking() -> None:
            while not closed.wait(0.3):
                self.look()

        thread = threading.Thread(target=looking)
        thread.start()
        try:
            yield
        finally:
            closed.set()
            thread.join()


def tell(project: TemporaryProject) -> Dashboard:
    """Play the story, and print what a person sees."""
    filled(project)
    dashboard = Dashboard(project)
    dashboard.look()
    with dashboard.stays_open():
        enriched(project)
    dashboard.look()
    print("# What a dashboard saw meanwhile: one state after the other, and no error.\n")
    for columns, rows, _ in dashboard.seen:
        print(f"{rows} rows of {', '.join(columns)}")
    print(f"{len(dashboard.errors)} errors")
    return dashboard


def filled(project: TemporaryProject) -> None:
    """Fill half a year."""
    write_deltalake(project.data / "sources/spending", pa.Table.from_pylist(spending()))
    print("# Half a year of segments.\n")
    print(project.do("run").transcript)


def enriched(project: TemporaryProject) -> None:
    """Add two columns to all history."""
    print("# Each row gets what the customer has spent, and the average order.\n")
    print(project.edit("shop/catalog.py", OLD, NEW))
    print(project.edit("shop/catalog.py", DECLARED, WIDER))
    planned = project.do("plan", "--reason", "segments with their spending", code=2)
    print(planned.transcript)
    print(project.do("apply", planned.plan_id).transcript)
    print(project.do("diff", planned.plan_id, code=2).transcript)
    print(project.do("promote", planned.plan_id, "--yes").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
