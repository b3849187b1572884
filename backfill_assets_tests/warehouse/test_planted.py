from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.column import Column
from backfill_assets.models.planted import Defect, Planted, defects_of
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.planted import planted_rows
from backfill_assets_tests.warehouse.shop import SALES_COLUMNS, days, frame, sale, sales

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLANTED = (
    Planted(Defect.DOUBLED, "size"),
    Planted(Defect.NEGATED, "size"),
    Planted(Defect.FANNED_OUT),
)


@pytest.mark.parametrize(
    ("dtype", "size", "expected"),
    [
        ("tinyint", -128, [[-128, 4], [-128, -2], [-128, -127, 2, 3]]),
        ("int", 2147483647, [[4, 2147483647], [-2147483647, -2], [2, 3, 2147483647, 2147483647]]),
        (
            "decimal(3,2)",
            9.99,
            [
                [Decimal("4.00"), Decimal("9.99")],
                [Decimal("-9.99"), Decimal("-2.00")],
                [Decimal("2.00"), Decimal("3.00"), Decimal("9.99"), Decimal("9.99")],
            ],
        ),
    ],
)
def test_a_number_that_its_type_can_not_hold_stays_and_the_others_are_planted(
    spark: SparkSession, dtype: str, size: float, expected: list[list[object]]
):
    model = sales(columns=(*SALES_COLUMNS[:2], Column("size", dtype)))
    rows = contract(frame(spark, model.schema, sale(1, "a", size), sale(1, "b", 2)), model)

    found = [planted_rows(rows, model, planted, *days(1)).collect() for planted in PLANTED]

    assert [sorted(row["size"] for row in rows) for rows in found] == expected


@pytest.mark.parametrize("dtype", ["timestamp", "timestamp_ntz"])
def test_a_time_beside_that_of_the_cell_is_shifted(spark: SparkSession, dtype: str):
    model = sales(columns=(*SALES_COLUMNS[:2], Column("sold_at", dtype)))
    row = f"(DATE'2024-01-01', 'a', {dtype}'2024-01-01 10:00:00')"
    moved = Planted(Defect.MOVED, "sold_at")
    assert moved in defects_of(model)

    found = planted_rows(contract(frame(spark, model.schema, row), model), model, moved, *days(1))

    assert found.selectExpr("CAST(sold_at AS STRING)").collect() == [("2024-01-01 12:00:00",)]
