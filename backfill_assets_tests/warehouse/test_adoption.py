from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Reconciles, RowRule
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.warehouse.files.tables import MissingTableError, Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.adoption import adopted_from, profile_table
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.inputs import no_rows
from backfill_assets.warehouse.rows.profile import Subject, profile
from backfill_assets.warehouse.rows.reading import published_rows
from backfill_assets_tests.warehouse.shop import (
    START,
    commit_cells,
    day,
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

NO_ZERO = RowRule("no_zero", "amount > 0")


def foreign(spark: SparkSession, path: Path, *rows: str, partitioned: bool = False) -> Table:
    """A table as somebody else writes one: other order, one column more, no `_cell`."""
    written = frame(spark, sales().schema, *rows).selectExpr("amount", "'x' AS more", "shop", "ds")
    writer = written.write.format("delta")
    (writer.partitionBy("ds") if partitioned else writer).save(str(path))
    return table_now(str(path))


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_table_of_any_layout_is_audited_cell_by_cell(
    spark: SparkSession, tmp_path: Path, *, partitioned: bool
):
    rows = (sale(1, "a"), sale(1, "b", 0), sale(3, "a", 2))
    table = foreign(spark, tmp_path / "theirs", *rows, partitioned=partitioned)
    model = sales(audits=[NO_ZERO])
    found = profile_table(spark, model, table)
    assert found.cells == IntervalSet.of(days(1, 3))
    assert [(cell_profile.content.rows, cell_profile.failing["no_zero"]) for cell_profile in found.profiles] == [
        (2, 1), (1, 0),
    ]  # fmt: skip


def test_an_adopted_batch_holds_what_was_audited_and_nothing_of_other_cells(
    spark: SparkSession, tmp_path: Path
):
    table = foreign(spark, tmp_path / "theirs", sale(1, "a"), sale(2, "b"), sale(3, "c"))
    audited = {
        cell_profile.cell: cell_profile.content
        for cell_profile in profile_table(spark, sales(), table).profiles
    }
    path, two = str(tmp_path / "ours"), days(2, 3)
    rows = contract(adopted_from(table)(spark, sales(), day(2, 2), {}), sales())
    commit_cells(rows, sales(), two, ticket(path, 1))
    ours = published_rows(spark, sales(), two, table_now(path))
    held = profile(ours, Subject(sales(), two, table_now(path)))
    assert {cell_profile.cell: cell_profile.content for cell_profile in held} == {
        cell: audited[cell] for cell in two
    }


def test_cells_are_those_of_the_models_own_zone(spark: SparkSession, tmp_path: Path):
    zoned = sales(
        kind=IncrementalByTimeRange(time_column="at"),
        cadence=Cadence(Unit.DAY, "America/New_York", start=START),
        unique_key=["at"],
        columns=(Column("at", "timestamp"),),
    )
    path = str(tmp_path / "theirs")
    at = "TIMESTAMP'2024-01-02 03:00:00+00:00'"
    spark.sql(f"SELECT {at} AS at").write.format("delta").save(path)
    found = profile_table(spark, zoned, table_now(path))
    assert found.cells == IntervalSet.of([zoned.cadence.cell("2024-01-01")])


def test_audits_that_compare_with_an_upstream_are_named_when_it_is_not_given(
    spark: SparkSession, tmp_path: Path
):
    audit = Reconciles("amounts", "amount", "commerce.raw_sales", "amount")
    table = foreign(spark, tmp_path / "theirs", sale(1, "a"))
    found = profile_table(spark, sales(audits=[audit, NO_ZERO]), table)
    assert found.left_out == ("amounts",)
    assert found.profiles[0].failing["no_zero"] == 0


def test_a_table_that_does_not_fit_is_refused_with_what_is_wrong(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "theirs")
    spark.sql("SELECT DATE'2024-01-01' AS ds, 1 AS amount").write.format("delta").save(path)
    with pytest.raises(RequestError, match="lacks shop; of another type are amount int"):
        profile_table(spark, sales(), table_now(path))
    with pytest.raises(MissingTableError):
        profile_table(spark, sales(), Table(str(tmp_path / "none"), ABSENT))


def test_rows_without_a_time_can_not_be_adopted(spark: SparkSession, tmp_path: Path):
    table = foreign(spark, tmp_path / "theirs", sale(1, "a"), "(NULL, 'b', 1)")
    with pytest.raises(DeclarationError, match="is NULL, for example"):
        profile_table(spark, sales(), table)


def test_an_empty_backfill_computes_no_row_in_the_declared_columns(spark: SparkSession):
    rows = contract(no_rows(spark, sales(), day(1, 3), {}), sales())
    assert rows.columns == ["ds", "shop", "amount", "_cell"]
    assert rows.count() == 0
