"""Two contents that differ have two checksums; two that are equal have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.column import Column
from backfill_assets.models.content import Content
from backfill_assets.warehouse.conform import contract, result_rows
from backfill_assets.warehouse.profile import Subject, profile
from backfill_assets.warehouse.tables import ABSENT, Table
from backfill_assets_tests.warehouse.shop import STAMP, days, frame, sales

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOWHERE = Table("nowhere", ABSENT)
DAY = "DATE'2024-01-01'"


def content_of(
    spark: SparkSession, columns: dict[str, str], *rows: str, **model: object
) -> Content:
    """The content of one day whose rows have these columns beside ds and shop."""
    declared = (
        Column("ds", "date"),
        Column("shop", "string"),
        *(Column(name, dtype) for name, dtype in columns.items()),
    )
    subject = Subject(sales(columns=declared, **model), days(1), NOWHERE)
    given = frame(spark, declared, *(f"({DAY}, {row})" for row in rows))
    computed = contract(given, subject.model)
    shaped = result_rows(computed, subject.model, subject.cells, NOWHERE, STAMP)
    (found,) = profile(shaped, subject)
    return found.content


def test_a_duplicated_pair_is_not_two_other_duplicated_pairs(spark: SparkSession):
    one = content_of(spark, {"v": "int"}, "'a', 1", "'a', 1", "'b', 2", "'b', 2")
    other = content_of(spark, {"v": "int"}, "'c', 5", "'c', 5", "'d', 9", "'d', 9")
    assert one.rows == other.rows
    assert one.key != other.key
    assert one.columns["v"] != other.columns["v"]


def test_a_null_that_moves_between_columns_changes_both(spark: SparkSession):
    types = {"v": "int", "w": "int"}
    one = content_of(spark, types, "'a', NULL, 1")
    other = content_of(spark, types, "'a', 1, NULL")
    assert one.key == other.key
    assert one.columns["v"] != other.columns["v"]
    assert one.columns["w"] != other.columns["w"]


def test_a_null_in_a_key_of_two_columns_is_not_the_other_null(spark: SparkSession):
    types = {"v": "int", "w": "int"}
    one = content_of(spark, types, "'a', NULL, 1", unique_key=("v", "w"))
    other = content_of(spark, types, "'a', 1, NULL", unique_key=("v", "w"))
    assert one.key != other.key


def test_values_swapped_between_rows_change_their_column_only(spark: SparkSession):
    types = {"v": "int", "w": "int"}
    one = content_of(spark, types, "'a', 1, 7", "'b', 2, 7")
    other = content_of(spark, types, "'a', 2, 7", "'b', 1, 7")
    assert one.key == other.key
    assert one.columns["v"] != other.columns["v"]
    assert one.columns["w"] == other.columns["w"]


def test_the_order_of_rows_does_not_matter(spark: SparkSession):
    one = content_of(spark, {"v": "int"}, "'a', 1", "'b', 2")
    assert one == content_of(spark, {"v": "int"}, "'b', 2", "'a', 1")


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_minus_zero_is_zero_and_every_nan_is_nan(spark: SparkSession, dtype: str):
    plain = ("'a', 0.0D", "'b', CAST('NaN' AS DOUBLE)", "'c', CAST('Infinity' AS DOUBLE)")
    signed = ("'a', -0.0D", "'b', -CAST('NaN' AS DOUBLE)", "'c', CAST('Infinity' AS DOUBLE)")
    one, other = (content_of(spark, {"v": dtype}, *rows) for rows in (plain, signed))
    assert one == other
    assert other != content_of(
        spark, {"v": dtype}, "'a', 0D", *plain[1:2], "'c', -CAST('inf' AS DOUBLE)"
    )


def test_doubles_that_were_summed_in_another_order_are_equal(spark: SparkSession):
    types = {"v": "double", "w": "double", "x": "double"}
    one = content_of(spark, types, "'a', (0.1D + 0.2D) + 0.3D, 9.9999999999D, -1E-200D")
    other = content_of(spark, types, "'a', 0.1D + (0.2D + 0.3D), 10D, -1.0000000000001E-200D")
    assert one == other


def test_doubles_that_differ_in_nine_digits_differ(spark: SparkSession):
    found = {
        content_of(spark, {"v": "double"}, f"'a', {value}").columns["v"]
        for value in (
            "1.00000001D",
            "1.00000002D",
            "-1.00000001D",
            "10.0000001D",
            "1E300D",
            "1E-300D",
            "NULL",
            "0D",
        )
    }
    assert len(found) == 8


def test_maps_are_equal_whatever_the_order_of_their_entries(spark: SparkSession):
    types = {"v": "map<string,double>"}
    one = content_of(spark, types, "'a', map('x', 1D, 'y', NULL)")
    assert one == content_of(spark, types, "'a', map('y', NULL, 'x', 1D)")
    assert one != content_of(spark, types, "'a', map('y', 1D, 'x', NULL)")


def test_nested_values_keep_their_shape(spark: SparkSession):
    types = {"v": "array<struct<k:int,m:map<string,array<int>>>>"}
    values = (
        "array(struct(1, map('x', array(1, NULL))))",
        "array(struct(1, map('x', array(NULL, 1))))",
        "array(struct(1, map('x', array(1))))",
        "array(struct(NULL, map('x', array(1))), NULL)",
        "array(NULL, struct(NULL, map('x', array(1))))",
        "array()",
        "NULL",
    )
    found = {content_of(spark, types, f"'a', {value}").columns["v"] for value in values}
    assert len(found) == len(values)


def test_an_audit_column_that_changes_alone_changes_nothing(spark: SparkSession):
    declared = (Column("ds", "date"), Column("shop", "string"))
    subject = Subject(sales(columns=declared, audit_columns=True), days(1), NOWHERE)
    computed = contract(frame(spark, declared, f"({DAY}, 'a')"), subject.model)
    rows = result_rows(computed, subject.model, days(1), NOWHERE, STAMP)
    later = rows.selectExpr("* EXCEPT (_batch_id)", "'another' AS _batch_id")
    assert profile(rows, subject) == profile(later, subject)
    assert set(profile(rows, subject)[0].content.columns) == {"ds", "shop"}
