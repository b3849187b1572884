from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, Column
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.totals import (
    Totals,
    totals,
    totals_by_spark,
    totals_in_files,
)
from backfill_assets_tests.warehouse.shop import (
    SALES_COLUMNS,
    commit_cells,
    days,
    frame,
    sale,
    sales,
    ticket,
)
from backfill_assets_tests.warehouse.test_compare_rows import (
    CELLS,
    WIDE,
    landed,
    rows_of_wide_sales,
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


BOTH = pytest.mark.parametrize("by_spark", [False, True], ids=["files", "spark"])


def found_in(
    spark: SparkSession,
    by_spark: bool,  # noqa: FBT001
    table: Table,
    *names: str,
    cells: IntervalSet = IntervalSet.of(days(1, 2, 3, 4)),  # noqa: B008 - a value
) -> Totals:
    if by_spark:
        return totals_by_spark(spark, MODEL, table, names, cells)
    return totals_in_files(MODEL, table, names, cells)


@BOTH
@pytest.mark.connect
def test_columns_are_counted_and_summed_in_the_cells_asked_for(
    spark: SparkSession, table: Table, *, by_spark: bool
):
    cells = IntervalSet.of(days(1, 2, 4))

    found = found_in(spark, by_spark, table, "rate", "note", cells=cells)

    assert found == Totals(4, {"rate": 3, "note": 2}, {"rate": Decimal("7.300000000")})


@BOTH
def test_a_sum_with_a_value_that_is_no_number_is_none(
    spark: SparkSession, table: Table, *, by_spark: bool
):
    found = found_in(spark, by_spark, table, "rate", "amount")

    assert found == Totals(5, {"rate": 4, "amount": 5}, {"rate": None, "amount": Decimal("5.00")})


@BOTH
def test_a_cell_counts_where_it_is_read_from(
    spark: SparkSession, table: Table, tmp_path: Path, *, by_spark: bool
):
    upper = a_table(spark, tmp_path / "upper", 1, range(2, 3), rated(2, "a", "5D"))
    both = Table(upper.path, upper.delta_version, IntervalSet.of(days(2)), (table,))

    found = found_in(spark, by_spark, both, "rate", cells=IntervalSet.of(days(1, 2)))

    assert found == Totals(3, {"rate": 3}, {"rate": Decimal("5.300000000")})


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=rows_of_wide_sales.filter(bool))
def test_files_say_what_spark_says(spark: SparkSession, tmp_path: Path, rows: list[dict[str, Any]]):
    model, landed_at = sales(columns=WIDE), landed(tmp_path / "t", rows)
    names = [column.name for column in WIDE]

    found = totals_in_files(model, landed_at, names, CELLS)

    assert found == totals_by_spark(spark, model, landed_at, names, CELLS)


def test_a_sum_of_many_digits_is_exact(tmp_path: Path):
    columns = (*SALES_COLUMNS[:2], Column("amount", "decimal(30,9)"))
    types = [("ds", pa.date32()), ("shop", pa.string()), ("amount", pa.decimal128(30, 9))]
    value = Decimal("123456789012345678901.123456789")
    row = {"ds": date(2024, 1, 1), "shop": "a", "amount": value}
    landed_at = landed(tmp_path / "t", [row], pa.schema([*types, (CELL_COLUMN, pa.date32())]))

    assert totals_in_files(sales(columns=columns), landed_at, ["amount"], CELLS).sums == {
        "amount": value
    }


def test_spark_is_asked_where_files_alone_do_not_tell(spark: SparkSession, table: Table):
    nothing = Table(table.path, ABSENT)

    assert totals(lambda: spark, MODEL, table, ("rate",)).rows == 5
    assert totals(lambda: spark, MODEL, nothing, ("rate", "later"), CELLS) == Totals(
        0, {"rate": 0}, {"rate": Decimal(0)}
    )
