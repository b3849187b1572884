"""A table that is rebuilt as a whole, written one range of its key after the other, holds the same rows (P15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark.errors import ArithmeticException
from pyspark.sql import functions as F

from backfill_assets.intervals.cadence import WHOLE_CELL, Whole
from backfill_assets.models.column import Column
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.kind import Full
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.warehouse.files.cell_files import files_at
from backfill_assets.warehouse.files.commit import written_cells
from backfill_assets.warehouse.log.delta_log import head
from backfill_assets_tests.warehouse.shop import batch, commit_cells, content, sales, ticket

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.models.model import Model

_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
_TEXTS = st.text(st.sampled_from("aZ0'\\`%_ é\n"), max_size=3)


def whole(dtype: str, ranges: KeyRanges | None) -> Model:
    """One row per key, in one cell."""
    return sales(
        kind=Full(),
        cadence=Whole(),
        query=SqlQuery("SELECT * FROM commerce.raw_sales"),
        columns=(Column("shop", dtype), Column("amount", "int")),
        unique_key=["shop"],
        key_ranges=ranges,
    )


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_each_key_lies_in_exactly_one_range(spark: SparkSession, data: st.DataObject):
    keys, dtype = data.draw(st.sampled_from([(_NUMBERS, "bigint"), (_TEXTS, "string")]))
    starts = sorted(data.draw(st.lists(keys, min_size=1, max_size=4, unique=True)))
    values = [*data.draw(st.lists(keys, max_size=8)), *starts, None]
    ranges = KeyRanges("shop", starts)
    rows = spark.createDataFrame([(value,) for value in values], f"shop {dtype}")
    found = rows.selectExpr("shop", *(f"coalesce({sql}, FALSE)" for sql in ranges.conditions()))
    for value, *within in found.collect():
        place = 0 if value is None else sum(value >= start for start in starts)
        assert within == [number == place for number in range(len(starts) + 1)]


@pytest.mark.parametrize(
    ("dtype", "starts"), [("bigint", [10, 20]), ("string", ["15", "2"]), ("bigint", [-5, 100, 200])]
)
def test_rows_that_are_written_by_ranges_are_those_that_are_written_at_once(
    spark: SparkSession, tmp_path: Path, dtype: str, starts: list[int | str]
):
    rows = [f"('{number}', {number * number})" for number in range(5, 26)]
    paths = []
    for name, ranges in (("ranges", KeyRanges("shop", starts)), ("once", None)):
        model = whole(dtype, ranges)
        paths.append(str(tmp_path / name))
        commit_cells(
            batch(spark, model, paths[-1], [WHOLE_CELL], *rows),
            model, [WHOLE_CELL], ticket(paths[-1], 1),
        )  # fmt: skip
    by_ranges, at_once = (content(spark, path, "shop", "amount") for path in paths)
    assert by_ranges == at_once
    assert len(by_ranges) == len(rows)
    found = [
        {
            sum(row.shop >= start for start in starts)
            for row in spark.read.parquet(f"{paths[0]}/{file.name}").collect()
        }
        for file in files_at(paths[0], head(paths[0]))
    ]
    assert sorted(map(list, found)) == [
        [place] for place in sorted({sum(shop >= start for start in starts) for shop, _ in at_once})
    ]


def test_a_range_that_fails_leaves_no_file_of_those_before_it(spark: SparkSession, tmp_path: Path):
    model = whole("bigint", KeyRanges("shop", [10]))
    rows = batch(spark, model, str(tmp_path), [WHOLE_CELL], "(1, 1)", "(30, 2)")
    failing = rows.withColumn("amount", F.expr("CAST(1 DIV (shop - 30) AS INT)"))
    with (
        pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"),
        written_cells(failing, model, [WHOLE_CELL], str(tmp_path)),
    ):
        pass
    assert not [*tmp_path.rglob("*.parquet")]


def test_a_range_without_rows_has_no_file_and_none_at_all_is_an_empty_cell(
    spark: SparkSession, tmp_path: Path
):
    model = whole("bigint", KeyRanges("shop", [10, 20]))
    for name, keys in (("first", [1]), ("last", [30]), ("none", [])):
        path = str(tmp_path / name)
        rows = batch(spark, model, path, [WHOLE_CELL], *(f"({key}, 1)" for key in keys))
        commit_cells(rows, model, [WHOLE_CELL], ticket(path, 1))
        assert len(files_at(path, head(path))) == len(keys)
        assert content(spark, path, "shop") == [(key,) for key in keys]
