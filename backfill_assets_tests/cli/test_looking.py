"""An answer never rests on a source that was not looked at without saying so."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = ("--select", "toy.sales")


def land(shop: Prepared, sales: Mapping[int, str]) -> Path:
    """Overwrite the sales, one for each day of January, by one file."""
    path = shop.data / "sources" / "raw_sales"
    path.mkdir(parents=True, exist_ok=True)
    rows = pa.table(
        {
            "ds": pa.array([date(2024, 1, day) for day in sales], pa.date32()),
            "shop": ["north"] * len(sales),
            "amount": pa.array([Decimal(one) for one in sales.values()], pa.decimal128(18, 2)),
        }
    )
    write_deltalake(str(path), rows, mode="overwrite")
    return path


@pytest.fixture
def filled(shop: Prepared, backfill: Backfill) -> Prepared:
    land(shop, {28: "1.00"})
    backfill("status", *SALES)  # the first look
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    assert backfill("status", *SALES).code == backfill("plan", *SALES).code == 0
    return shop


def test_an_overwritten_source_is_looked_at_by_status_and_by_plan_without_spark(
    filled: Prepared, backfill: Backfill
):
    land(filled, {28: "1.00", 29: "2.00", 31: "3.00"})

    planned = backfill("plan", *SALES)
    looked = backfill("status", *SALES)

    assert planned.code == 2
    assert planned.lines[-1].endswith(" 2 stale: 2 need a plan.")
    assert (looked.code, planned.err) == (0, "")
    assert looked.lines[-1] == "prod: 1 model, 0 cells missing, 2 stale: 2 need a plan."
    assert "late     toy.sales: 2024-01-29, 2024-01-31" in looked.out


def test_what_could_not_be_looked_at_is_named_and_does_not_end_with_0(
    filled: Prepared, backfill: Backfill
):
    for file in land(filled, {28: "1.00", 29: "2.00"}).glob("*.parquet"):
        file.unlink()

    ended = backfill("status", *SALES)

    assert ended.code == 3
    assert (
        "source 'toy.raw_sales' has commits that were not looked at, so there may be more to do; "
        "`backfill plan` looks at the rows"
    ) in " ".join(ended.out.split())
    assert backfill("status", *SALES, "--json").json["left"]["not_looked_at"] == ["toy.raw_sales"]
