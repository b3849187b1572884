from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import head, logged_commits
from backfill_assets.warehouse.log.ticket import CommitLostError
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.copies import copy_cells, find_commit, restore_cells
from backfill_assets_tests.warehouse.shop import (
    SALES_COLUMNS,
    batch,
    commit_cells,
    content,
    day,
    days,
    frame,
    order,
    orders,
    partitions_touched,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WIDER = sales(columns=(*SALES_COLUMNS, Column("rate", "int")))


def cells(*numbers: int) -> IntervalSet:
    return IntervalSet.of(days(*numbers))


def sold(spark: SparkSession, path: str, token: int, shop: str, *numbers: int) -> None:
    rows = batch(spark, sales(), path, days(*numbers), *(sale(n, shop) for n in numbers))
    commit_cells(rows, sales(), days(*numbers), ticket(path, token))


def held(spark: SparkSession, path: str, *columns: str) -> list[tuple[object, ...]]:
    rows = content(spark, path, "ds", "shop", *columns)
    return [(ds.day, *others) for ds, *others in rows]


def named(batch_id: str) -> str:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    return BatchCommit(
        batch_id, "prod", "commerce.sales", "v", "f", day(1), "run", "root", "p1", "promoted", 1,
        7, 2, at, (), (), (),
    ).to_json()  # fmt: skip


@pytest.mark.connect
def test_a_promotion_replaces_exactly_the_cells_that_differ(spark: SparkSession, tmp_path: Path):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 1, "old", 1, 2, 3)
    sold(spark, mine, 1, "new", 1, 2)
    copied = copy_cells(
        lambda: spark, sales(), table_now(mine), cells(1, 2), cells(2), ticket(prod, 2)
    )
    assert held(spark, prod) == [(1, "old"), (2, "new"), (3, "old")]
    assert partitions_touched(prod, copied.delta_version) == {"2024-01-02"}


def test_a_promotion_that_changes_nothing_is_a_commit_all_the_same(
    spark: SparkSession, tmp_path: Path
):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 1, "a", 1)
    sold(spark, mine, 1, "a", 1)
    nothing = IntervalSet.empty()
    copied = copy_cells(
        lambda: spark, sales(), table_now(mine), cells(1), nothing, ticket(prod, 2, "it")
    )
    (commit,) = logged_commits(prod, copied.delta_version - 1)
    assert (commit.metadata, commit.changes_data) == ("it", False)


def test_a_cell_that_the_plan_emptied_is_empty_after_its_promotion(
    spark: SparkSession, tmp_path: Path
):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 1, "a", 1, 2)
    commit_cells(batch(spark, sales(), mine, days(1)), sales(), days(1), ticket(mine, 1))
    copy_cells(lambda: spark, sales(), table_now(mine), cells(1), cells(1), ticket(prod, 2))
    assert held(spark, prod) == [(2, "a")]


def test_the_commit_of_a_copy_is_found_by_its_name(spark: SparkSession, tmp_path: Path):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 1, "old", 1)
    sold(spark, mine, 1, "new", 1)
    since = head(prod)
    assert find_commit(prod, since, "p1:commerce.sales") is None
    said = ticket(prod, 2, named("p1:commerce.sales"))
    copied = copy_cells(lambda: spark, sales(), table_now(mine), cells(1), cells(1), said)
    assert (commit := find_commit(prod, since, "p1:commerce.sales")) is not None
    assert commit.delta_version == copied.delta_version
    assert find_commit(prod, copied.delta_version, "p1:commerce.sales") is None


def test_a_promotion_whose_lock_was_taken_over_writes_nothing(spark: SparkSession, tmp_path: Path):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 5, "old", 1)
    sold(spark, mine, 1, "new", 1)
    with pytest.raises(CommitLostError):
        copy_cells(lambda: spark, sales(), table_now(mine), cells(1), cells(1), ticket(prod, 4))
    assert held(spark, prod) == [(1, "old")]


def test_a_key_that_was_published_elsewhere_meanwhile_stops_the_promotion(
    spark: SparkSession, tmp_path: Path
):
    model = orders(kind=IncrementalByUniqueKey(time_column="ds", rows_move=True))
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    for path, number in ((prod, 9), (mine, 2)):
        rows = batch(spark, model, path, days(number), order(1, number))
        commit_cells(rows, model, days(number), ticket(path, 1))
    at = head(prod)
    with pytest.raises(DeclarationError, match="holds keys of this batch in the cells 2024-01-09"):
        copy_cells(lambda: spark, model, table_now(mine), cells(2), cells(2), ticket(prod, 2))
    assert head(prod) == at


def test_cells_go_back_to_an_older_content_and_the_days_since_stay(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    sold(spark, path, 1, "good", 1, 2)
    good = head(path)
    sold(spark, path, 2, "bad", 1, 2, 3)
    sold(spark, path, 3, "later", 4)
    restored = restore_cells(
        lambda: spark, sales(), good, cells(2, 3), cells(2, 3), ticket(path, 4)
    )
    assert held(spark, path) == [(1, "bad"), (2, "good"), (4, "later")]
    assert partitions_touched(path, restored.delta_version) == {"2024-01-02", "2024-01-03"}


def test_a_table_gains_the_columns_that_its_model_declares_by_now(
    spark: SparkSession, tmp_path: Path
):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 1, "old", 1, 2)
    before = head(prod)
    computed = frame(spark, WIDER.schema, "(DATE'2024-01-02', 'new', 1, 7)")
    commit_cells(contract(computed, WIDER), WIDER, days(2), ticket(mine, 1))
    copy_cells(lambda: spark, WIDER, table_now(mine), cells(2), cells(2), ticket(prod, 2))
    assert held(spark, prod, "rate") == [(1, "old", None), (2, "new", 7)]
    added, _ = logged_commits(prod, before)
    assert not added.changes_data


def test_a_column_that_is_declared_no_more_is_not_copied_and_so_does_not_come_back(
    spark: SparkSession, tmp_path: Path
):
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    sold(spark, prod, 1, "old", 1)
    computed = frame(spark, WIDER.schema, "(DATE'2024-01-02', 'new', 1, 7)")
    commit_cells(contract(computed, WIDER), WIDER, days(2), ticket(mine, 1))
    copy_cells(lambda: spark, sales(), table_now(mine), cells(2), cells(2), ticket(prod, 2))
    computed = frame(spark, WIDER.schema, "(DATE'2024-01-03', 'next', 1, 8)")
    commit_cells(contract(computed, WIDER), WIDER, days(3), ticket(prod, 3))
    assert held(spark, prod, "rate") == [(1, "old", None), (2, "new", None), (3, "next", 8)]


def test_after_a_way_back_the_older_snapshot_writes_the_wider_table(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    sold(spark, path, 1, "old", 1, 2)
    good = head(path)
    computed = frame(spark, WIDER.schema, "(DATE'2024-01-02', 'new', 1, 7)")
    commit_cells(contract(computed, WIDER), WIDER, days(2), ticket(path, 2))
    restore_cells(lambda: spark, sales(), good, cells(2), cells(2), ticket(path, 3))
    sold(spark, path, 4, "next", 3)
    assert held(spark, path, "rate") == [(1, "old", None), (2, "old", None), (3, "next", None)]


def test_a_source_over_others_is_copied_as_it_reads(spark: SparkSession, tmp_path: Path):
    prod, mine, under = (str(tmp_path / name) for name in ("prod", "mine", "under"))
    sold(spark, prod, 1, "old", 1, 2)
    sold(spark, mine, 1, "mine", 1)
    sold(spark, under, 1, "under", 1, 2)
    source = replace(table_now(mine), cells=cells(1), under=(Table(under, head(under)),))
    copy_cells(lambda: spark, sales(), source, cells(1, 2), cells(1, 2), ticket(prod, 2))
    assert held(spark, prod) == [(1, "mine"), (2, "under")]
