from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.models.column import Column
from backfill_assets.warehouse.files.housekeeping import evolve_table, fence, is_ours, restore
from backfill_assets.warehouse.files.stored_columns import column_changes, stored_columns
from backfill_assets.warehouse.files.tables import delta_schema, table_now
from backfill_assets.warehouse.log.delta_log import head, last_token, logged_commit
from backfill_assets.warehouse.log.ticket import CommitLostError
from backfill_assets.warehouse.rows.conform import contract, result_rows
from backfill_assets_tests.warehouse.shop import (
    ORDER_COLUMNS,
    SALES_COLUMNS,
    STAMP,
    batch,
    commit_cells,
    content,
    days,
    frame,
    order,
    orders,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

APP = "commerce__sales"
WIDER = sales(columns=(*SALES_COLUMNS, Column("tags", "array<string>"), Column("rate", "double")))
RETYPED = sales(columns=(*SALES_COLUMNS[:2], Column("amount", "double")))


def filled(spark: SparkSession, path: str) -> None:
    rows = batch(spark, sales(), path, days(1), sale(1, "a"))
    commit_cells(rows, sales(), days(1), ticket(path, 1))


def test_new_columns_come_in_a_fenced_commit_that_is_ours(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "sales")
    filled(spark, path)
    done = evolve_table(lambda: spark, WIDER, path, app_id=APP, token=2)
    assert done is not None
    assert is_ours(logged_commit(path, done.delta_version).metadata)
    assert dict(delta_schema(path, done.delta_version))["tags"] == "array<string>"
    assert last_token(path, APP) == 2
    assert evolve_table(lambda: spark, WIDER, path, app_id=APP, token=2) is None
    with pytest.raises(CommitLostError):
        evolve_table(lambda: spark, sales(columns=(*WIDER.schema, Column("x", "int"))), path,
                     app_id=APP, token=1)  # fmt: skip


def test_the_holder_of_one_token_may_fence_restore_evolve_and_commit(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    filled(spark, path)
    fence(path, app_id=APP, token=2)
    restore(path, 1, app_id=APP, token=2)
    computed = frame(spark, WIDER.schema, "(DATE'2024-01-02', 'b', 1, array('x'), 0.5)")
    commit_cells(contract(computed, WIDER), WIDER, days(2), ticket(path, 2))
    assert content(spark, path, "shop", "rate") == [("a", None), ("b", 0.5)]


def test_a_merge_finds_the_new_column_in_the_table(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "orders")
    rows = batch(spark, orders(), path, days(1), order(1, 1), order(2, 1))
    commit_cells(rows, orders(), days(1), ticket(path, 1))
    wider = orders(columns=(*ORDER_COLUMNS, Column("rate", "int")))
    computed = frame(spark, wider.schema, f"{order(1, 1)[:-1]}, 7)", f"{order(2, 1)[:-1]}, NULL)")
    computed = contract(computed, wider)
    rows = result_rows(computed, wider, days(1), table_now(path), STAMP)
    commit_cells(rows, wider, days(1), ticket(path, 2))
    assert content(spark, path, "order_id", "rate") == [(1, 7), (2, None)]


def test_a_column_of_another_type_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    filled(spark, path)
    at = head(path)
    rows = contract(frame(spark, RETYPED.schema, sale(1, "a")), RETYPED)
    with pytest.raises(RequestError, match="it changes the type of amount decimal"):
        commit_cells(rows, RETYPED, days(1), ticket(path, 2))
    assert head(path) == at


def test_a_column_that_is_declared_no_more_changes_nothing_in_the_table(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    filled(spark, path)
    there = dict(delta_schema(path, head(path)))
    narrower = sales(columns=SALES_COLUMNS[:2])
    changes = column_changes(stored_columns(narrower), there)
    assert (changes.added, changes.retyped) == ({}, ())
