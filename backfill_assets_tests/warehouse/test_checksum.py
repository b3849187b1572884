"""Two contents that differ have two checksums; two that are equal have one."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql import types as T

from backfill_assets.models.column import Column
from backfill_assets.models.content import Content
from backfill_assets.warehouse.files.tables import Table
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.checksum import (
    NO_SUM,
    exact_sum,
    hash_within,
    sum_of_doubles,
    value_hash,
)
from backfill_assets.warehouse.rows.conform import contract, result_rows
from backfill_assets.warehouse.rows.profile import Subject, profile
from backfill_assets_tests.warehouse.shop import STAMP, days, frame, sales

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOWHERE = Table("nowhere", ABSENT)
DAY = "DATE'2024-01-01'"


def content_of(
    spark: SparkSession,
    columns: dict[str, str],
    *rows: str,
    tolerances: Mapping[str, float] | None = None,
    **model: object,
) -> Content:
    """The content of one day whose rows have these columns beside ds and shop."""
    declared = (
        Column("ds", "date"),
        Column("shop", "string"),
        *(
            Column(name, dtype, tolerance=(tolerances or {}).get(name))
            for name, dtype in columns.items()
        ),
    )
    subject = Subject(sales(columns=declared, **model), days(1), NOWHERE)
    given = frame(spark, declared, *(f"({DAY}, {row})" for row in rows))
    computed = contract(given, subject.model)
    shaped = result_rows(computed, subject.model, subject.cells, NOWHERE, STAMP)
    (found,) = profile(shaped, subject)
    return found.content


def test_a_duplicated_pair_is_not_two_other_duplicated_pairs(spark: SparkSession):
    content = content_of(spark, {"v": "int"}, "'a', 1", "'a', 1", "'b', 2", "'b', 2")
    other = content_of(spark, {"v": "int"}, "'c', 5", "'c', 5", "'d', 9", "'d', 9")
    assert content.rows == other.rows
    assert content.key != other.key
    assert content.columns["v"] != other.columns["v"]


def test_a_null_that_moves_between_columns_changes_both(spark: SparkSession):
    types = {"v": "int", "w": "int"}
    content = content_of(spark, types, "'a', NULL, 1")
    other = content_of(spark, types, "'a', 1, NULL")
    assert content.key == other.key
    assert content.columns["v"] != other.columns["v"]
    assert content.columns["w"] != other.columns["w"]


def test_a_null_in_a_key_of_two_columns_is_not_the_other_null(spark: SparkSession):
    types = {"v": "int", "w": "int"}
    content = content_of(spark, types, "'a', NULL, 1", unique_key=("v", "w"))
    other = content_of(spark, types, "'a', 1, NULL", unique_key=("v", "w"))
    assert content.key != other.key


def test_values_swapped_between_rows_change_their_column_only(spark: SparkSession):
    types = {"v": "int", "w": "int"}
    content = content_of(spark, types, "'a', 1, 7", "'b', 2, 7")
    other = content_of(spark, types, "'a', 2, 7", "'b', 1, 7")
    assert content.key == other.key
    assert content.columns["v"] != other.columns["v"]
    assert content.columns["w"] == other.columns["w"]


def test_the_order_of_rows_does_not_matter(spark: SparkSession):
    content = content_of(spark, {"v": "int"}, "'a', 1", "'b', 2")
    assert content == content_of(spark, {"v": "int"}, "'b', 2", "'a', 1")


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_minus_zero_is_zero_and_every_nan_is_nan(spark: SparkSession, dtype: str):
    plain = ("'a', 0.0D", "'b', CAST('NaN' AS DOUBLE)", "'c', CAST('Infinity' AS DOUBLE)")
    signed = ("'a', -0.0D", "'b', -CAST('NaN' AS DOUBLE)", "'c', CAST('Infinity' AS DOUBLE)")
    content, other = (content_of(spark, {"v": dtype}, *rows) for rows in (plain, signed))
    assert content == other
    assert other != content_of(
        spark, {"v": dtype}, "'a', 0D", *plain[1:2], "'c', -CAST('inf' AS DOUBLE)"
    )


WIDTHS: dict[str, tuple[Literal[32, 64], str]] = {"double": (64, "d"), "float": (32, "f")}


@pytest.mark.parametrize("dtype", ["double", "float"])
@settings(max_examples=15, deadline=None, database=None)
@given(data=st.data())
def test_two_floats_have_one_checksum_exactly_if_they_have_the_same_bits(
    spark: SparkSession, dtype: str, data: st.DataObject
):
    width, code = WIDTHS[dtype]
    drawn = data.draw(st.lists(st.floats(width=width), min_size=10, max_size=40))
    values = [
        *drawn,
        *(_neighbour(number, code) for number in drawn),
        0.0,
        -0.0,
        math.nan,
        -math.nan,
    ]
    schema = T.StructType([T.StructField("v", {"d": T.DoubleType(), "f": T.FloatType()}[code])])
    table = spark.createDataFrame([(number,) for number in values], schema)
    hashed = table.selectExpr("v", f"{value_hash('v', schema, '1L')} AS h").collect()
    assert len({row["h"] for row in hashed}) == len({_bits(number, code) for number in values})
    by_hash: dict[int, set[bytes]] = defaultdict(set)
    for row in hashed:
        by_hash[row["h"]].add(_bits(row["v"], code))
    assert all(len(bits) == 1 for bits in by_hash.values())


def _bits(value: float, code: str) -> bytes:
    """The oracle: a number's own bits, but for NaN and minus zero."""
    if math.isnan(value):
        return b"NaN"
    return struct.pack(code, 0.0 if value == 0 else value)


def _neighbour(value: float, code: str) -> float:
    """The number beside it, of the same width: its last bit is the other one."""
    if math.isnan(value) or math.isinf(value):
        return value
    whole = {"d": "Q", "f": "I"}[code]
    (number,) = struct.unpack(whole, struct.pack(code, value))
    (neighbour,) = struct.unpack(code, struct.pack(whole, number ^ 1))
    return neighbour


TOLERANCES = (1e-9, 0.01, 3.0, 1e-300, 7e250)


@pytest.mark.parametrize("dtype", ["double", "float"])
@settings(max_examples=12, deadline=None, database=None)
@given(data=st.data(), tolerance=st.sampled_from(TOLERANCES))
def test_two_values_that_count_as_within_a_tolerance_are(
    spark: SparkSession, dtype: str, tolerance: float, data: st.DataObject
):
    width, code = WIDTHS[dtype]
    places = st.integers(-(2**53), 2**53) | st.integers(-50, 50)
    drawn = [
        *data.draw(st.lists(st.floats(width=width), min_size=5, max_size=20)),
        *(
            place * (tolerance / 4)
            for place in data.draw(st.lists(places, min_size=5, max_size=20))
        ),
    ]
    values = [_of_width(number, code) for number in drawn]
    values += [_neighbour(number, code) for number in values]
    values += [0.0, -0.0, math.nan, math.inf, -math.inf]
    schema = T.StructType([T.StructField("v", {"d": T.DoubleType(), "f": T.FloatType()}[code])])
    table = spark.createDataFrame([(number,) for number in [*values, None]], schema)
    near = hash_within("v", schema, "1L", tolerance)
    places_of: dict[int, list[float | None]] = defaultdict(list)
    for row in table.selectExpr("v", f"{near} AS h").collect():
        places_of[row["h"]].append(row["v"])
    for together in places_of.values():
        assert all(_is_within(*pair, tolerance) for pair in combinations(together, 2))
    assert len({_bits(number, code) for number in values} | {None}) >= len(places_of)


def _is_within(number: float | None, other: float | None, tolerance: float) -> bool:
    """The oracle, in exact numbers."""
    if number is None or other is None:
        return number is other
    if not (math.isfinite(number) and math.isfinite(other)):
        return number == other or (math.isnan(number) and math.isnan(other))
    return abs(Fraction(number) - Fraction(other)) <= Fraction(tolerance)


def _of_width(value: float, code: str) -> float:
    """The number of that width beside a number."""
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def test_the_last_digits_of_round_numbers_lie_in_one_place_of_the_grid(spark: SparkSession):
    schema = T.StructType([T.StructField("v", T.DoubleType())])
    near = hash_within("v", schema, "1L", 1e-9)
    sums = [0.0, 1e-17, -1e-17, 0.3, 0.1 + 0.2, 10.5, 10.5 + 4e-15, 1e5 + 0.1, 100000.10000000002]
    hashed = [
        row["h"]
        for row in spark.createDataFrame([(number,) for number in sums], schema)
        .selectExpr(f"{near} AS h")
        .collect()
    ]
    assert [len(set(hashed[n : n + m])) for n, m in ((0, 3), (3, 2), (5, 2), (7, 2))] == [1] * 4
    assert len(set(hashed)) == 4


def test_a_content_has_a_checksum_within_the_tolerance_beside_the_exact_one(spark: SparkSession):
    types = {"v": "double", "w": "double"}

    def held(*values: str) -> Content:
        return content_of(
            spark, types, *(f"{value}, 1D" for value in values), tolerances={"v": 0.01}
        )

    content, near, far = (held(f"'a', {v}", "'b', NULL") for v in ("5D", "5.001D", "5.1D"))
    assert content != near
    assert content.columns["v"] != near.columns["v"]
    assert content.within == near.within
    assert content.within.keys() == {"v"}
    assert content.within != far.within
    assert content.within != held("'a', NULL", "'b', 5D").within


def test_floats_inside_of_structs_arrays_and_maps_are_exact(spark: SparkSession):
    types = {"v": "struct<a:double,b:array<float>,c:map<double,double>>"}

    def value(one: str = "1D", two: str = "2F", three: str = "3D", four: str = "4D") -> str:
        return f"'a', named_struct('a', {one}, 'b', array({two}), 'c', map({three}, {four}))"

    found = {
        content_of(spark, types, each).columns["v"]
        for each in (
            value(),
            value(one="1.0000000000000002D"),
            value(two="CAST(2.0000002 AS FLOAT)"),
            value(three="3.0000000000000004D"),
            value(four="4.000000000000001D"),
        )
    }
    assert len(found) == 5
    zeros = (value("-0D", "CAST('-0' AS FLOAT)", "-0D", "-0D"), value("0D", "0F", "0D", "0D"))
    minus, plus = (content_of(spark, types, each) for each in zeros)
    assert minus == plus


def test_a_correction_beyond_the_ninth_digit_is_another_content(spark: SparkSession):
    pairs = (
        ("1234567890.10D", "1234567894.90D"),
        ("1700000000D", "1700000003D"),  # epoch seconds
        ("(0.1D + 0.2D) + 0.3D", "0.1D + (0.2D + 0.3D)"),
    )
    for before, after in pairs:
        content, other = (content_of(spark, {"v": "double"}, f"'a', {v}") for v in (before, after))
        assert content.columns["v"] != other.columns["v"]
        assert (content.key, content.columns["shop"]) == (other.key, other.columns["shop"])


def test_only_checksums_of_types_that_were_rounded_once_are_named_by_their_algorithm(
    spark: SparkSession,
):
    types = {"i": "bigint", "m": "decimal(18,2)", "d": "double", "n": "array<struct<x:float>>"}
    held = content_of(spark, types, "'a', 1, 2, 3, array(named_struct('x', 4F))")
    assert isinstance(held.key, int)
    named = {name for name, found in held.columns.items() if str(found).startswith("exact:")}
    assert named == {"d", "n"}
    keyed = content_of(spark, types, "'a', 1, 2, 3, array()", unique_key=("d",))
    assert str(keyed.key).startswith("exact:")
    assert all(str(found).startswith("exact:") for found in keyed.columns.values())


def test_variants_of_the_same_text_and_other_types_differ(spark: SparkSession):
    values = ("'2024-01-01'", "DATE'2024-01-01'", "1D", "CAST(1 AS FLOAT)", "1L")
    found = {
        content_of(
            spark, {"v": "variant"}, f"'a', to_variant_object(named_struct('x', {value}))"
        ).columns["v"]
        for value in values
    }
    assert len(found) == len(values)


def test_a_sum_over_a_value_without_a_decimal_is_no_number(spark: SparkSession):
    def total(*values: str) -> str:
        listed = ", ".join(f"({value})" for value in values)
        (row,) = (
            spark.sql(f"VALUES {listed} AS t(v)").selectExpr(exact_sum("v", "double")).collect()
        )
        return row[0]

    assert total("1.5D", "NULL", "2D") == "3.500000000"
    for odd in ("CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "1e300D"):
        assert total("1.5D", odd) == NO_SUM


@pytest.mark.parametrize(
    ("dtype", "value"), [("decimal(38,18)", "6e19"), ("decimal(38,0)", "6e37"), ("double", "6e28")]
)
def test_a_sum_of_too_many_digits_is_no_number(spark: SparkSession, dtype: str, value: str):
    rows = spark.sql(f"SELECT CAST({value} AS {dtype}) AS v FROM range(2)")  # noqa: S608

    assert rows.limit(1).selectExpr(exact_sum("v", dtype)).collect()[0][0] != NO_SUM
    assert rows.selectExpr(exact_sum("v", dtype)).collect()[0][0] == NO_SUM
    assert sum_of_doubles([(6e28, 1)]) is not None
    assert sum_of_doubles([(6e28, 2)]) is None


@pytest.mark.parametrize("huge", [1e29, -1e91, 1e308])
def test_a_double_of_any_size_has_a_sum_or_none(huge: float):
    assert sum_of_doubles([(1.5, 1), (huge, 1)]) is None


def test_numbers_in_texts_are_summed_as_they_are(spark: SparkSession):
    def total(*values: str) -> str:
        rows = spark.createDataFrame([(value,) for value in values], "v STRING")
        return rows.selectExpr(exact_sum("v", "string")).collect()[0][0]

    assert total("1.6", "1.6") == "3.200000000"
    assert total("1.6", "about two") == NO_SUM


def test_maps_are_equal_whatever_the_order_of_their_entries(spark: SparkSession):
    types = {"v": "map<string,double>"}
    content = content_of(spark, types, "'a', map('x', 1D, 'y', NULL)")
    assert content == content_of(spark, types, "'a', map('y', NULL, 'x', 1D)")
    assert content != content_of(spark, types, "'a', map('y', 1D, 'x', NULL)")


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

    types, values = (
        {"v": "array<array<boolean>>"},
        ("array(array(), array(), array())", "array(array(FALSE))"),
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
