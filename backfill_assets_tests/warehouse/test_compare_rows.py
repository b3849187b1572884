from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.intervals.cadence import Weekly
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import CELL_COLUMN, Column
from backfill_assets.render.diff_text import difference_text
from backfill_assets.warehouse.compare import compare_rows as few
from backfill_assets.warehouse.compare.compare import compare, differences
from backfill_assets.warehouse.compare.compare_rows import compare_rows
from backfill_assets.warehouse.compare.comparison_sql import BY_CELL, Compared, Question
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError
from backfill_assets_tests.warehouse.shop import (
    SALES_COLUMNS,
    commit_cells,
    day,
    days,
    frame,
    order,
    orders,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.models.model import Model

WIDE = (
    *SALES_COLUMNS,
    Column("rate", "double"),
    Column("sold", "bigint"),
    Column("open", "boolean"),
    Column("since", "date"),
    Column("seen_at", "timestamp", shown=False),
)
ARROW = pa.schema(
    [
        ("ds", pa.date32()),
        ("shop", pa.string()),
        ("amount", pa.decimal128(18, 2)),
        ("rate", pa.float64()),
        ("sold", pa.int64()),
        ("open", pa.bool_()),
        ("since", pa.date32()),
        ("seen_at", pa.timestamp("us", "UTC")),
        (CELL_COLUMN, pa.date32()),
    ]
)
CELLS = IntervalSet.of(days(1, 2, 3))
ASKED = (
    Question(cells=CELLS),
    Question(cells=CELLS, by=()),
    Question(cells=CELLS, by=(*BY_CELL, "shop")),
    Question(cells=IntervalSet.of(days(2)), by=("sold", "since", "open")),
    Question(cells=CELLS, by=(), profile=True),
    Question(cells=CELLS, profile=True, tolerances=(("amount", "0.5"), ("rate", "2.5"))),
    Question(cells=CELLS, tolerances=(("sold", "3"), ("rate", "0.1"))),
)

_days = st.sampled_from([date(2024, 1, number) for number in (1, 2, 3)])
_rates = st.sampled_from(
    [float("nan"), float("inf"), -0.0, 0.0, 1e30, -1e300, 0.1, 2.5e-10]
) | st.floats(-1e6, 1e6)
rows_of_wide_sales = st.lists(
    st.fixed_dictionaries(
        {
            "ds": _days,
            "shop": st.sampled_from(["a", 'b"\\', "ç\n"]) | st.none(),
            "amount": st.decimals(-999, 999, places=2) | st.none(),
            "rate": _rates | st.none(),
            "sold": st.integers(-(2**62), 2**62) | st.sampled_from([0, 1, None]),
            "open": st.booleans() | st.none(),
            "since": _days | st.none(),
            "seen_at": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001
                lambda instant: instant.replace(tzinfo=UTC)
            )
            | st.none(),
        }
    ),
    max_size=8,
)


def landed(path: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema = ARROW) -> Table:
    found = [{**row, CELL_COLUMN: row["ds"]} for row in rows]
    names = [name for name in schema.names if name in {*(found[0] if found else schema.names)}]
    listed = pa.Table.from_pylist(found, schema=pa.schema([schema.field(name) for name in names]))
    write_deltalake(str(path), listed, mode="overwrite", partition_by=[CELL_COLUMN])
    return table_now(str(path))


def a_row(number: int, shop: str, **values: Any) -> dict[str, Any]:  # noqa: ANN401
    nothing = dict.fromkeys(column.name for column in WIDE)
    return {**nothing, "ds": date(2024, 1, number), "shop": shop, **values}


@pytest.mark.spark
def test_a_decimal_is_shown_with_the_digits_that_differ(spark: SparkSession, tmp_path: Path):
    columns = (
        *SALES_COLUMNS[:2],
        Column("amount", "decimal(18,2)"),
        Column("share", "decimal(38,18)"),
    )
    types = pa.schema([*[*ARROW][:3], ("share", pa.decimal128(38, 18)), (CELL_COLUMN, pa.date32())])
    shares = ("0.123456789012345678", "0.123456789012345679")
    old, new = (
        landed(tmp_path / share, [a_row(1, "a", amount=Decimal(4), share=Decimal(share))], types)
        for share in shares
    )
    both, asked = Compared(sales(columns=columns), old, new), Question(cells=CELLS)
    (row,) = compare_rows(both, asked).differences(3)
    assert (
        difference_text(row) == f"changed ds=2024-01-01, shop=a: share {shares[0]} -> {shares[1]}"
    )
    (added,) = compare_rows(replace(both, old=Table("", ABSENT)), asked).differences(3)
    assert added.new["amount"] == 4.0
    assert isinstance(added.new["amount"], float)
    assert [row] == [*differences(spark, both, asked, 3)]


@pytest.mark.spark
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(old=rows_of_wide_sales, new=rows_of_wide_sales, asked=st.sampled_from(ASKED))
def test_it_says_what_spark_says(
    spark: SparkSession,
    tmp_path: Path,
    old: list[dict[str, Any]],
    new: list[dict[str, Any]],
    asked: Question,
):
    compared = Compared(
        sales(columns=WIDE), landed(tmp_path / "old", old), landed(tmp_path / "new", new + old[:4])
    )
    found = compare_rows(compared, asked)
    by_spark = compare(spark, compared, asked)
    assert found.comparison() == by_spark
    assert repr(found.comparison()) == repr(by_spark)  # a sum has its places
    if asked.tolerances:
        most = asked.tolerances[-1][0]
        tops = found.differences(1, most), differences(spark, compared, asked, 1, most)
        assert [[*map(repr, top)] for top in tops[:1]] == [[*map(repr, top)] for top in tops[1:]]
    shown, told = found.differences(50), differences(spark, compared, asked, 50)
    assert sorted(map(repr, shown)) == sorted(map(repr, told))
    assert [(row.cell, str(row.key["shop"])) for row in shown] == [
        (row.cell, str(row.key["shop"])) for row in told
    ]


@pytest.mark.spark
def test_it_reads_what_a_batch_has_written(spark: SparkSession, tmp_path: Path):
    model: Model = orders()
    sides: dict[str, Table] = {}
    for name, amount in (("old", 1), ("new", 2)):
        rows = frame(spark, model.schema, order(1, 1, seen=5), order(2, 2, amount, seen=7))
        path = str(tmp_path / name)
        commit_cells(contract(rows, model), model, days(1, 2), ticket(path, 1))
        sides[name] = table_now(path)
    compared = Compared(model, sides["old"], sides["new"])
    asked = Question(cells=IntervalSet.of(days(1, 2)))
    found = compare_rows(compared, asked)
    assert found.comparison() == compare(spark, compared, asked)
    assert found.differences(5) == differences(spark, compared, asked, 5)


def test_a_layered_table_is_compared_as_it_reads(tmp_path: Path):
    first, other = a_row(1, "a", sold=1), a_row(2, "a", sold=1)
    lacking = [
        {name: value for name, value in row.items() if name != "rate"} for row in (first, other)
    ]
    old = landed(tmp_path / "old", lacking)
    new = landed(tmp_path / "new", [a_row(2, "a", sold=2, rate=0.5)])
    overlay = replace(new, cells=IntervalSet.of(days(2)), under=(old,))
    compared = Compared(sales(columns=WIDE), old, overlay)
    found = compare_rows(compared, Question(cells=CELLS)).comparison()
    assert [(group.by, group.rows_changed) for group in found.groups] == [
        (("2024-01-01",), 0), (("2024-01-02",), 1),
    ]  # fmt: skip
    assert found.added == ("rate",)
    assert [group.columns["rate"].new_filled for group in found.groups] == [0, 1]


def test_a_column_that_one_side_lacks_is_null_there(tmp_path: Path):
    lacking = {name: value for name, value in a_row(1, "a").items() if name != "sold"}
    sides = landed(tmp_path / "old", [lacking]), landed(tmp_path / "new", [a_row(1, "a", sold=3)])
    compared = Compared(sales(columns=WIDE), *sides)
    found = compare_rows(compared, Question(cells=CELLS, by=("sold",))).comparison()
    assert [(group.by, group.keys_added, group.keys_removed) for group in found.groups] == [
        ((None,), 0, 1), (("3",), 1, 0),
    ]  # fmt: skip


def test_against_nothing_every_row_is_added(tmp_path: Path):
    new = landed(tmp_path / "new", [a_row(1, "a", amount=Decimal("1.50")), a_row(2, "a")])
    compared = Compared(sales(columns=WIDE), Table("nowhere", ABSENT), new)
    (total,) = compare_rows(compared, Question(by=(), cells=CELLS)).comparison().groups
    assert (total.old_rows, total.keys_added, total.columns["amount"].new_sum) == (
        0, 2, Decimal("1.50"),
    )  # fmt: skip


def test_what_spark_alone_reads_as_it_does_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    old = landed(tmp_path / "old", [a_row(1, "a"), a_row(2, "b")])
    compared = Compared(sales(columns=WIDE), old, old)
    retyped = pa.schema(
        [pa.field("sold", pa.int32()) if field.name == "sold" else field for field in ARROW]
    )
    other = landed(tmp_path / "other", [a_row(1, "a")], retyped)
    by_rate = replace(compared, model=sales(columns=WIDE, unique_key=["ds", "rate"]))
    weekly = replace(compared, old_model=sales(columns=WIDE, cadence=Weekly(start="2024-01-01")))
    for refused, asked in (
        (compared, Question()),
        (compared, Question(cells=CELLS, where="shop = 'a'")),
        (compared, Question(cells=CELLS, by=("rate",))),
        (compared, Question(cells=CELLS, by=("m",), computed=(("m", "month(ds)"),))),
        (by_rate, Question(cells=CELLS)),
        (weekly, Question(cells=CELLS)),
        (compared, Question(cells=CELLS, own_tolerances=(("sold", "open", "1"),))),
        (replace(compared, new=other), Question(cells=CELLS)),
    ):
        with pytest.raises(NeedsSparkError):
            compare_rows(refused, asked)
    monkeypatch.setattr(few, "MOST_ROWS", 3)
    with pytest.raises(NeedsSparkError, match="more than"):
        compare_rows(compared, Question(cells=CELLS))
    assert compare_rows(compared, Question(cells=IntervalSet.of([day(1)]))).pairs


@pytest.mark.parametrize("since", [-719_163, 2_932_897], ids=["before-0001", "after-9999"])
def test_a_date_that_python_does_not_know_is_left_to_spark(tmp_path: Path, since: int):
    row = {**a_row(1, "a"), CELL_COLUMN: date(2024, 1, 1)}
    rows, at = pa.Table.from_pylist([row], schema=ARROW), ARROW.get_field_index("since")
    dates = pa.array([since], pa.int32()).cast(pa.date32())
    no_bounds = {
        "delta.dataSkippingNumIndexedCols": "0"
    }  # as in a file of ours that holds such a date
    write_deltalake(
        str(tmp_path / "t"),
        rows.set_column(at, "since", dates),
        partition_by=[CELL_COLUMN],
        configuration=no_bounds,
    )
    table = table_now(str(tmp_path / "t"))

    with pytest.raises(NeedsSparkError, match="out of range"):
        compare_rows(Compared(sales(columns=WIDE), table, table), Question(cells=CELLS))


@pytest.mark.parametrize("digits", [(31, 2), (38, 10)])
def test_tolerances_of_decimals_that_spark_may_round_are_left_to_it(
    tmp_path: Path, digits: tuple[int, int]
):
    wide = pa.schema(
        [
            field.with_type(pa.decimal128(*digits)) if field.name == "amount" else field
            for field in ARROW
        ]
    )
    table = landed(tmp_path / "t", [a_row(1, "a", amount=Decimal(1))], wide)
    both = Compared(sales(columns=WIDE), table, table)

    assert compare_rows(both, Question(cells=CELLS)).pairs
    with pytest.raises(NeedsSparkError, match="column 'amount' has a type"):
        compare_rows(both, Question(cells=CELLS, tolerances=(("amount", "1"),)))


def test_files_that_are_gone_are_left_to_spark(tmp_path: Path):
    table = landed(tmp_path / "old", [a_row(1, "a")])
    for file in (tmp_path / "old").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(NeedsSparkError):
        compare_rows(Compared(sales(columns=WIDE), table, table), Question(cells=CELLS))


def test_the_sql_of_a_comparison_is_written_without_opening_a_log_again(tmp_path: Path):
    lacking = {name: value for name, value in a_row(1, "a", rate=1.5).items() if name != "sold"}
    old, new = landed(tmp_path / "old", [lacking]), landed(tmp_path / "new", [a_row(1, "a")])
    compared = compare_rows(Compared(sales(columns=WIDE), old, new), Question(cells=CELLS))
    before = compared.comparison().sql
    shutil.rmtree(tmp_path / "old" / "_delta_log")
    shutil.rmtree(tmp_path / "new" / "_delta_log")
    assert compared.comparison().sql == before
    assert "CAST(NULL AS bigint) AS `sold`" in before
