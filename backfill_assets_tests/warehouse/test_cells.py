from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.warehouse.files.cells import (
    cell_expression,
    cell_number,
    cell_of_number,
    cells_predicate,
    number_expression,
    time_predicate,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRIDS = [
    Cadence(unit, tz)
    for unit in Unit
    for tz in ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata")
]
INSTANTS = [
    datetime(2018, 11, 4, 2, 59, 59, tzinfo=UTC),  # Sao Paulo has no midnight this day
    datetime(2018, 11, 4, 3, 0, tzinfo=UTC),
    datetime(2024, 3, 31, 0, 30, tzinfo=UTC),  # Berlin's clocks go forward
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),  # and back
    datetime(2024, 12, 31, 23, 15, tzinfo=UTC),
    datetime(2024, 2, 29, 18, 31, tzinfo=UTC),
]


@pytest.mark.spark
def test_spark_cuts_the_same_cells_as_the_cadence(spark: SparkSession):
    texts = ", ".join(f"(TIMESTAMP'{at.isoformat()}')" for at in INSTANTS)
    given = spark.sql(f"VALUES {texts} AS t(at)")
    numbers = [
        f"{number_expression(grid, cell_expression('at', 'timestamp', grid))} AS n{index}"
        for index, grid in enumerate(GRIDS)
    ]
    rows = given.selectExpr("unix_seconds(at) AS at", *numbers).collect()
    found = {datetime.fromtimestamp(row["at"], UTC): row for row in rows}
    for at in INSTANTS:
        for index, grid in enumerate(GRIDS):
            (cell,) = grid.cells(Interval(at, at.replace(second=at.second, microsecond=1)))
            assert found[at][f"n{index}"] == cell_number(grid, cell), (at, grid)
            assert cell_of_number(grid, cell_number(grid, cell)) == cell


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["America/Havana", "Asia/Beirut", "Europe/Berlin"])
def test_a_time_without_a_zone_is_read_in_the_cell_that_it_is_put_in_also_where_clocks_skip_midnight(
    spark: SparkSession, zone: str
):
    grid = Cadence(Unit.DAY, zone)
    days = [grid.cell(day) for day in ("2024-03-09", "2024-03-10", "2024-03-30", "2024-03-31")]
    times = [f"{day} {at}" for day in ("2024-03-10", "2024-03-31") for at in ("00:00", "00:30")]
    texts = ", ".join(f"(TIMESTAMP_NTZ'{time}:00')" for time in times)
    given = spark.sql(f"VALUES {texts} AS t(at)")
    number = number_expression(grid, cell_expression("at", "timestamp_ntz", grid))

    for cell in days:
        read = given.where(time_predicate("at", "timestamp_ntz", grid, [cell]))
        put = given.where(f"{number} = {cell_number(grid, cell)}")
        assert read.collect() == put.collect()


def test_a_day_in_a_zone_is_a_local_date():
    grid = Cadence(Unit.DAY, "Europe/Berlin")
    cells = [grid.cell("2024-03-31")]
    assert cells_predicate(grid, cells) == (
        "(_cell >= DATE'2024-03-31' AND _cell < DATE'2024-04-01')"
    )


def test_a_date_can_not_name_an_hour():
    with pytest.raises(DeclarationError, match="expected a TIMESTAMP"):
        cell_expression("ds", "date", Cadence(Unit.HOUR))
