from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.warehouse.conform import contract
from backfill_assets.warehouse.tables import ABSENT, Table, table_now
from backfill_assets.warehouse.totals import Totals, totals
from backfill_assets_tests.warehouse.shop import (
    SALES_COLUMNS,
    commit_cells,
    days,
    frame,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RATED = (*SALES_COLUMNS, Column("rate", "double"), Column("note", "string"))
MODEL = sales(columns=RATED)


def rated(day: int, shop: str, rate: str, note: str = "NULL") -> str:
    return f"{sale(day, shop)[:-1]}, {rate}, {note})"


def a_table(spark: SparkSession, path: Path, token: int, cells: range, *rows: str) -> Table:
    computed = contract(frame(spark, RATED, *rows), MODEL)
    commit_cells(computed, MODEL, days(*cells), ticket(str(path), token))
    return table_now(str(path))


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return a_table(
        spark, tmp_path_factory.mktemp("totals") / "t", 1, range(1, 5),
        rated(1, "a", "0.1D", "'x'"), rated(1, "b", "0.2D"), rated(2, "a", "CAST(NULL AS DOUBLE)"),
        rated(3, "a", "DOUBLE('NaN')"), rated(4, "a", "7D", "'y'"),
    )  # fmt: skip


@pytest.mark.connect
def test_columns_are_counted_and_summed_in_the_cells_asked_for(spark: SparkSession, table: Table):
    cells = IntervalSet.of(days(1, 2, 4))

    found = totals(spark, MODEL, table, ("rate", "note"), cells)

    assert found == Totals(4, {"rate": 3, "note": 2}, {"rate": Decimal("7.300000000")})


def test_a_sum_with_a_value_that_is_no_number_is_none(spark: SparkSession, table: Table):
    found = totals(spark, MODEL, table, ("rate", "amount"))

    assert found == Totals(5, {"rate": 4, "amount": 5}, {"rate": None, "amount": Decimal("5.00")})


def test_a_cell_counts_where_it_is_read_from(spark: SparkSession, table: Table, tmp_path: Path):
    upper = a_table(spark, tmp_path / "upper", 1, range(2, 3), rated(2, "a", "5D"))
    both = Table(upper.path, upper.delta_version, IntervalSet.of(days(2)), (table,))

    found = totals(spark, MODEL, both, ("rate",), IntervalSet.of(days(1, 2)))

    assert found == Totals(3, {"rate": 3}, {"rate": Decimal("5.300000000")})


def test_no_row_has_no_value_and_a_column_that_the_table_lacks_is_left_out(
    spark: SparkSession, table: Table
):
    found = totals(spark, MODEL, Table(table.path, ABSENT), ("rate", "later"))

    assert found == Totals(0, {"rate": 0}, {"rate": Decimal(0)})
