from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.intervals.cadence import WHOLE_CELL, Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full, IncrementalByUniqueKey
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.warehouse.files.layers import outside, parts_of, rows_of, table_of, without
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract, result_rows
from backfill_assets.warehouse.rows.inputs import Input, read_cells, read_whole
from backfill_assets.warehouse.rows.moves import cells_moved_from
from backfill_assets_tests.warehouse.shop import (
    DAILY,
    ORDER_COLUMNS,
    SALES_COLUMNS,
    STAMP,
    batch,
    commit_cells,
    content,
    day,
    days,
    frame,
    order,
    orders,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.models.model import Model

pytestmark = pytest.mark.spark

DAYS = 4


def a_set(*numbers: int) -> IntervalSet:
    return IntervalSet.of(days(*numbers))


def a_table(spark: SparkSession, path: Path, shop: str, *numbers: int) -> Table:
    """One sale of a shop in each of some days."""
    rows = batch(spark, sales(), str(path), days(*numbers), *(sale(n, shop) for n in numbers))
    commit_cells(rows, sales(), days(*numbers), ticket(str(path), 1))
    return table_now(str(path))


def over(top: Table, cells: IntervalSet | None, *under: Table) -> Table:
    return Table(top.path, top.delta_version, cells, under)


def only(table: Table, cells: IntervalSet | None) -> Table:
    return Table(table.path, table.delta_version, cells)


def found(rows: DataFrame) -> list[tuple[int, str]]:
    return sorted((row["ds"].day, row["shop"]) for row in rows.select("ds", "shop").collect())


@pytest.fixture(scope="module")
def three(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, ...]:
    """Three tables that hold the same days with another shop each."""
    root = tmp_path_factory.mktemp("layers")
    return tuple(a_table(spark, root / name, name, *range(1, DAYS + 1)) for name in "abc")


def test_a_cell_comes_from_the_uppermost_table_that_answers_for_it(
    spark: SparkSession, three: tuple[Table, ...]
):
    a, b, c = three
    for second in (a_set(1, 3), a_set(3)):
        table = over(a, a_set(1), only(b, second), c)
        assert found(rows_of(spark, sales(), table)) == [(1, "a"), (2, "c"), (3, "b"), (4, "c")]


CELLS = st.none() | st.sets(st.integers(1, DAYS)).map(lambda chosen: a_set(*chosen))


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(answers=st.tuples(CELLS, CELLS, CELLS), wanted=CELLS)
def test_the_layers_read_as_one_table_are_what_cell_by_cell_reading_gives(
    spark: SparkSession,
    three: tuple[Table, ...],
    answers: tuple[IntervalSet | None, ...],
    wanted: IntervalSet | None,
):
    first, *rest = (only(layer, cells) for layer, cells in zip(three, answers, strict=True))
    table = over(first, first.cells, *rest)

    def shop_of(number: int) -> str | None:
        holds = zip("abc", answers, strict=True)
        return next((name for name, it in holds if it is None or day(number) in it), None)

    numbers = [n for n in range(1, DAYS + 1) if wanted is None or day(n) in wanted]
    expected = [(n, shop) for n in numbers if (shop := shop_of(n)) is not None]
    assert found(rows_of(spark, sales(), table, wanted)) == expected


def test_of_each_layer_only_the_files_of_its_own_cells_are_scanned(
    spark: SparkSession, three: tuple[Table, ...]
):
    a, b, _ = three
    rows = read_cells(spark, Input(sales(), over(a, a_set(2), b), a_set(2, 3)))
    files = {(parts[-4], parts[-2]) for file in rows.inputFiles() if (parts := file.split("/"))}
    assert files == {("a", "_cell=2024-01-02"), ("b", "_cell=2024-01-03")}


def test_a_layer_that_gives_no_row_is_not_read(three: tuple[Table, ...]):
    a, b, c = three
    table = over(a, a_set(2), only(b, a_set(2)), c)
    assert [Path(part.path).name for part in parts_of(DAILY, table, a_set(2))] == ["a"]
    assert [Path(part.path).name for part in parts_of(DAILY, table, a_set(3))] == ["c"]
    assert [Path(part.path).name for part in parts_of(DAILY, table)] == ["a", "c"]


def test_a_table_whose_every_cell_is_hidden_gives_no_row(
    spark: SparkSession, three: tuple[Table, ...]
):
    hidden = outside(three[0], a_set(*range(1, DAYS + 1)))
    assert found(rows_of(spark, sales(), hidden)) == []
    assert found(rows_of(spark, sales(), over(three[1], a_set(2), hidden))) == [(2, "b")]


def test_a_table_without_a_commit_leaves_its_cells_to_those_under_it(
    spark: SparkSession, three: tuple[Table, ...]
):
    table = Table("nowhere", ABSENT, IntervalSet.empty(), (three[0],))
    assert table.exists
    assert len(found(rows_of(spark, sales(), table))) == DAYS


def test_a_table_that_is_one_cell_is_read_from_one_layer_as_a_whole(
    spark: SparkSession, tmp_path: Path
):
    model = sales(
        kind=Full(), cadence=Cadence(Unit.WHOLE), unique_key=["ds", "shop"],
        query=SqlQuery("SELECT * FROM commerce.raw_sales"),
    )  # fmt: skip
    tables = []
    for shop in ("new", "old"):
        path = str(tmp_path / shop)
        rows = batch(spark, model, path, [WHOLE_CELL], sale(1, shop), sale(2, shop))
        commit_cells(rows, model, [WHOLE_CELL], ticket(path, 1))
        tables.append(table_now(path))
    new, old = tables
    whole = IntervalSet.of([WHOLE_CELL])
    assert found(rows_of(spark, model, over(new, whole, old), whole)) == [(1, "new"), (2, "new")]
    none = over(new, IntervalSet.empty(), old)
    assert found(rows_of(spark, model, none, whole)) == [(1, "old"), (2, "old")]


def test_a_column_that_an_older_table_lacks_is_null_in_its_rows(
    spark: SparkSession, three: tuple[Table, ...], tmp_path: Path
):
    wider = sales(columns=(*SALES_COLUMNS, Column("rate", "decimal(9,4)")))
    path = str(tmp_path / "wider")
    computed = frame(spark, wider.schema, "(DATE'2024-01-01', 'new', 1, 0.5)")
    commit_cells(contract(computed, wider), wider, days(1), ticket(path, 1))
    rows = read_whole(spark, Input(wider, over(table_now(path), a_set(1), three[0]), a_set(1)))
    assert rows.schema["rate"].dataType.simpleString() == "decimal(9,4)"
    by_day = {row["ds"].day: row["rate"] for row in rows.collect()}
    assert {number: rate is None for number, rate in by_day.items()} == {
        1: False, 2: True, 3: True, 4: True,
    }  # fmt: skip


def merged(spark: SparkSession, path: str, model: Model, number: int, *rows: str) -> None:
    cells = days(number)
    commit_cells(batch(spark, model, path, cells, *rows), model, cells, ticket(path, number))


def test_a_key_that_moves_out_of_a_lower_cell_makes_that_cell_the_upper_tables(
    spark: SparkSession, tmp_path: Path
):
    model = orders(kind=IncrementalByUniqueKey(time_column="ds", rows_move=True))
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    merged(spark, prod, model, 1, order(1, 1), order(2, 1))
    merged(spark, prod, model, 3, order(3, 3))
    before = content(spark, prod, "order_id", "ds")
    target = Table(mine, ABSENT, IntervalSet.empty(), (table_now(prod),))
    computed = contract(frame(spark, ORDER_COLUMNS, order(1, 2)), model)
    moved = cells_moved_from(computed, model, days(2), target)
    assert moved == days(1)
    rows = result_rows(computed, model, days(2), target, STAMP, moved)
    commit_cells(rows, model, days(1, 2), ticket(mine, 1))
    overlay = over(table_now(mine), a_set(1, 2), table_now(prod))
    seen = {(row["order_id"], row["ds"]) for row in rows_of(spark, model, overlay).collect()}
    assert seen == {(1, date(2024, 1, 2)), (2, date(2024, 1, 1)), (3, date(2024, 1, 3))}
    assert content(spark, prod, "order_id", "ds") == before


def test_keys_that_a_model_keeps_are_kept_from_the_table_below(spark: SparkSession, tmp_path: Path):
    model = orders(deletes="none")
    prod, mine = str(tmp_path / "prod"), str(tmp_path / "mine")
    merged(spark, prod, model, 1, order(1, 1), order(2, 1))
    target = Table(mine, ABSENT, IntervalSet.empty(), (table_now(prod),))
    computed = contract(frame(spark, ORDER_COLUMNS, order(1, 1, 9)), model)
    rows = result_rows(computed, model, days(1), target, STAMP)
    assert sorted((r["order_id"], int(r["amount"])) for r in rows.collect()) == [(1, 9), (2, 1)]


def test_cells_that_are_still_to_be_built_are_empty_whatever_lies_under_them(
    three: tuple[Table, ...], spark: SparkSession
):
    a, b, _ = three
    table = without(over(a, a_set(1), b), a_set(1, 2))
    assert found(rows_of(spark, sales(), table)) == [(1, "a"), (3, "b"), (4, "b")]


def test_pins_of_one_upstream_are_one_table_the_first_over_the_others(three: tuple[Table, ...]):
    a, b, _ = three
    pins = [
        InputPin("commerce.sales", "mine", a.path, a.delta_version, a_set(1)),
        InputPin("commerce.sales", "prod", b.path, b.delta_version),
    ]
    assert table_of(pins, located=str) == over(a, a_set(1), b)
