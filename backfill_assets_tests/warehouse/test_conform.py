from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey, SoftDelete, Tombstone
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract, result_rows, without_cells
from backfill_assets.warehouse.rows.kept_rows import History, only_in_history
from backfill_assets.warehouse.rows.moves import cells_moved_from, without_overtaken
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

    from backfill_assets.models.model import Model

pytestmark = pytest.mark.spark


def without_key(row: str) -> str:
    """The same row of the first order, without its number."""
    return row.replace("(1,", "(NULL,")


def unseen(row: str) -> str:
    """The same row without the time at which it was seen."""
    return row.replace("TIMESTAMP'2024-01-01 00:00:00+00:00'", "NULL")


def test_columns_come_in_the_declared_order_with_their_cell(spark: SparkSession):
    given = frame(spark, SALES_COLUMNS, sale(1, "a")).select("amount", "shop", "ds")
    assert contract(given, sales()).columns == ["ds", "shop", "amount", "_cell"]


def test_a_query_with_other_columns_is_refused_by_name(spark: SparkSession):
    given = frame(spark, SALES_COLUMNS).selectExpr(
        "ds", "CAST(amount AS DOUBLE) AS amount", "1 AS x"
    )
    with pytest.raises(
        DeclarationError, match="Cast or rename in the query, or change the"
    ) as refused:
        contract(given, sales())
    words = (
        "without shop; with undeclared x; with other types: amount double (declared decimal(18,2));"
    )
    assert words in str(refused.value)


def test_of_rows_with_one_key_the_latest_wins_and_ties_are_always_broken_alike(spark: SparkSession):
    model = orders(kind=IncrementalByUniqueKey(time_column="ds", latest_by="seen_at"))
    rows = [
        unseen(order(1, 1, 8)),
        order(1, 1, 5, seen=1),
        order(1, 1, 6, seen=2),
        order(1, 1, 7, seen=2),
    ]
    found = {
        int(contract(frame(spark, model.schema, *given), model).collect()[0]["amount"])
        for given in (rows, rows[::-1])
    }
    assert len(found) == 1
    assert found < {6, 7}


def test_rows_without_a_key_are_no_versions_of_one_row(spark: SparkSession):
    model = orders(kind=IncrementalByUniqueKey(time_column="ds", latest_by="seen_at"))
    nameless = without_key(order(1, 1, seen=1))

    rows = contract(frame(spark, model.schema, nameless, nameless, order(2, 1)), model)

    assert sorted(map(str, (row["order_id"] for row in rows.collect()))) == ["2", "None", "None"]


def test_of_cells_that_are_left_out_no_row_without_a_time_is_taken_for_one(spark: SparkSession):
    model = sales()
    timeless = sale(1, "nowhere").replace("DATE'2024-01-01'", "NULL")
    rows = contract(frame(spark, model.schema, sale(1, "a"), sale(2, "b"), timeless), model)

    left = without_cells(rows, model, IntervalSet.of(days(2)))

    assert sorted(row["shop"] for row in left.collect()) == ["a", "nowhere"]


def rebuilt(spark: SparkSession, path: str, model: Model) -> list[tuple[object, ...]]:
    """A day of two orders, of which the source has lost the second, and another day."""
    rows = batch(spark, model, path, days(1, 2), order(1, 1), order(2, 1), order(3, 2))
    commit_cells(rows, model, days(1, 2), ticket(path, 1))
    rows = batch(spark, model, path, days(1), order(1, 1, 4))
    commit_cells(rows, model, days(1), ticket(path, 2))
    return content(spark, path, "order_id", "gone")


def test_the_latest_row_keeps_a_column_of_any_name(spark: SparkSession):
    kind = IncrementalByUniqueKey(time_column="ds", latest_by="seen_at")
    model = orders(columns=(*ORDER_COLUMNS, Column("_rank", "int")), kind=kind)
    given = frame(spark, model.schema, f"{order(1, 1)[:-1]}, 7)")

    (row,) = contract(given, model).collect()

    assert row["_rank"] == 7


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("absent", [(1, None), (3, None)]),
        ("none", [(1, None), (2, None), (3, None)]),
        (SoftDelete("gone"), [(1, None), (2, True), (3, None)]),
        (Tombstone("gone"), [(1, None), (2, None), (3, None)]),
    ],
    ids=["absent", "none", "soft", "tombstone"],
)
def test_a_key_that_the_source_lost_follows_the_delete_policy(
    spark: SparkSession, tmp_path: Path, policy: object, left: list[tuple[object, ...]]
):
    assert rebuilt(spark, str(tmp_path / "orders"), orders(deletes=policy)) == left


@pytest.mark.parametrize(
    "declared", [{"deletes": "none"}, {"audit_columns": True}], ids=["kept", "stamped"]
)
def test_rows_without_a_key_do_not_multiply_with_each_build(
    spark: SparkSession, tmp_path: Path, declared: dict[str, Any]
):
    path, model = str(tmp_path / "orders"), orders(**declared)
    nameless = without_key(order(1, 1))

    for number in (1, 2, 3):
        rows = batch(spark, model, path, days(1), nameless, nameless, order(2, 1))
        commit_cells(rows, model, days(1), ticket(path, number))

    assert len(content(spark, path, "amount")) == 3


@pytest.mark.parametrize("carried", [True, False])
def test_rows_without_a_key_are_none_that_only_history_has(
    spark: SparkSession,
    tmp_path: Path,
    carried: bool,  # noqa: FBT001
):
    path, model = str(tmp_path / "orders"), orders(deletes="none")
    nameless = without_key(order(1, 1))
    rows = batch(spark, model, path, days(1), nameless, order(2, 1))
    commit_cells(rows, model, days(1), ticket(path, 1))
    computed, history = contract(frame(spark, model.schema, nameless), model), table_now(path)

    kept = only_in_history(computed, model, days(1), Table("", ABSENT), History(history, carried))

    assert [row["order_id"] for row in kept.collect()] == [2]


@pytest.mark.parametrize("dtype", ["boolean", "string"])
def test_a_tombstone_deletes_its_key(spark: SparkSession, tmp_path: Path, dtype: str):
    columns = [
        replace(each, dtype=dtype) if each.name == "gone" else each for each in ORDER_COLUMNS
    ]
    path, model = str(tmp_path / "orders"), orders(deletes=Tombstone("gone"), columns=columns)
    commit_cells(
        batch(spark, model, path, days(1), order(1, 1), order(2, 1)),
        model,
        days(1),
        ticket(path, 1),
    )
    rows = batch(spark, model, path, days(1), order(2, 1, gone="TRUE"))
    commit_cells(rows, model, days(1), ticket(path, 2))
    assert content(spark, path, "order_id") == [(1,)]


def test_a_tombstone_without_a_key_is_no_row_beside_others(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "orders"), orders(deletes=Tombstone("gone"))
    nameless, gone = (without_key(order(1, 1, gone=gone)) for gone in ("FALSE", "TRUE"))

    rows = batch(spark, model, path, days(1), nameless, gone)

    assert [row["gone"] for row in rows.collect()] == [False]


def test_a_key_in_another_cell_is_refused_with_a_sample(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "orders"), orders()
    commit_cells(batch(spark, model, path, days(1), order(7, 1)), model, days(1), ticket(path, 1))
    computed = contract(frame(spark, model.schema, order(7, 2), order(8, 2)), model)
    with pytest.raises(DeclarationError, match="rows_move=True") as refused:
        cells_moved_from(computed, model, days(2), table_now(path))
    assert 'in the cells 2024-01-01, for example {"order_id":7}; expected' in str(refused.value)


@pytest.mark.parametrize(
    ("stored", "computed", "stays"),
    [
        (order(1, 2, seen=2), order(1, 1, seen=1), False),
        (order(1, 2, seen=1), order(1, 1, seen=2), True),
        (order(1, 2, seen=1), unseen(order(1, 1)), False),
        (unseen(order(1, 2)), order(1, 1, seen=1), True),
        (unseen(order(1, 2)), unseen(order(1, 1)), False),
        (order(1, 2, seen=2, gone="TRUE"), order(1, 1, seen=1), True),
    ],
    ids=["earlier", "later", "none against one", "one against none", "none", "deleted"],
)
def test_a_row_gives_way_to_a_later_version_in_another_cell(
    spark: SparkSession,
    tmp_path: Path,
    stored: str,
    computed: str,
    stays: bool,  # noqa: FBT001
):
    kind = IncrementalByUniqueKey(time_column="ds", latest_by="seen_at", rows_move=True)
    path, model = str(tmp_path / "orders"), orders(kind=kind, deletes=SoftDelete("gone"))
    commit_cells(batch(spark, model, path, days(2), stored), model, days(2), ticket(path, 1))
    rows = contract(frame(spark, model.schema, computed), model)

    left = without_overtaken(rows, model, days(1), table_now(path))

    assert bool(left.collect()) == stays


def test_audit_columns_say_who_wrote_a_row_and_stay_while_it_does_not_change(
    spark: SparkSession, tmp_path: Path
):
    path, model = str(tmp_path / "orders"), orders(audit_columns=True)
    rows = batch(spark, model, path, days(1), order(1, 1), order(2, 1))
    commit_cells(rows, model, days(1), ticket(path, 1))
    later = replace(STAMP, batch_id="batch-2", now=datetime(2024, 3, 1, tzinfo=UTC))
    computed = contract(frame(spark, model.schema, order(1, 1), order(2, 1, 5), order(3, 1)), model)
    rows = result_rows(computed, model, days(1), table_now(path), later)
    commit_cells(rows, model, days(1), ticket(path, 2))
    found = (
        spark.read.format("delta")
        .load(path)
        .orderBy("order_id")
        .selectExpr("_batch_id", "month(_inserted_at)", "month(_updated_at)")
    )
    assert [tuple(row) for row in found.collect()] == [
        ("batch-1", 2, 2),
        ("batch-2", 2, 3),
        ("batch-2", 3, 3),
    ]


def test_a_row_that_moves_and_those_that_it_leaves_keep_when_they_were_inserted(
    spark: SparkSession, tmp_path: Path
):
    kind = IncrementalByUniqueKey(time_column="ds", rows_move=True)
    path, model = str(tmp_path / "orders"), orders(audit_columns=True, kind=kind)
    rows = batch(spark, model, path, days(1), order(1, 1), order(2, 1))
    commit_cells(rows, model, days(1), ticket(path, 1))
    later = replace(STAMP, batch_id="batch-2", now=datetime(2024, 3, 1, tzinfo=UTC))
    computed = contract(frame(spark, model.schema, order(1, 2)), model)

    rows = result_rows(computed, model, days(2), table_now(path), later, moved_from=days(1))

    found = rows.orderBy("order_id").selectExpr(
        "_batch_id", "month(_inserted_at)", "month(_updated_at)"
    )
    assert [tuple(row) for row in found.collect()] == [("batch-2", 2, 3), ("batch-1", 2, 2)]
