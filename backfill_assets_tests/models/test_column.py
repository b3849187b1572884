from __future__ import annotations

import datetime as dt
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Annotated, Any

import pandera.pyspark as pa
import pyspark.sql.types as T
import pytest
from pandera.api.extensions import register_check_method
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from backfill_assets.errors import DeclarationError
from backfill_assets.models.audit import (
    Audit,
    RowRule,
    Severity,
    Unique,
    accepted_range,
    accepted_values,
    complete,
    fresh,
    known_rows,
    not_null,
    row_count_within,
    unique,
)
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.column import (
    TYPES,
    Column,
    SchemaModel,
    canonical_type,
    columns_of,
    is_numeric,
    require_types,
    sql_literal,
)
from backfill_assets.models.graph import build_graph
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.warehouse.files.tables import same_type
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source

CHECKS = [
    ({"gt": 1}, "greater_than", "`c` > 1"),
    ({"ge": -1.5}, "greater_than_or_equal_to", "`c` >= -1.5"),
    ({"lt": 3}, "less_than", "`c` < 3"),
    ({"le": 3}, "less_than_or_equal_to", "`c` <= 3"),
    ({"eq": 3}, "equal_to", "`c` = 3"),
    ({"ne": 3}, "not_equal_to", "`c` <> 3"),
    ({"in_range": {"min_value": 0, "max_value": 1}}, "in_range", "`c` >= 0 AND `c` <= 1"),
    (
        {"in_range": {"min_value": 0, "max_value": 1, "include_min": False, "include_max": False}},
        "in_range",
        "`c` > 0 AND `c` < 1",
    ),
    ({"isin": [2, 1]}, "isin", "`c` IN (1, 2)"),
    ({"notin": [2, 1]}, "notin", "`c` NOT IN (1, 2)"),
    ({"str_contains": "a.b"}, "str_contains", "`c` RLIKE 'a.b'"),
    ({"str_matches": "a"}, "str_matches", "`c` RLIKE '^a'"),
    ({"str_matches": "a|b"}, "str_matches", "`c` RLIKE '^(?:a|b)'"),
    ({"str_matches": "^a|b"}, "str_matches", "`c` RLIKE '^(?:^a|b)'"),
    ({"str_startswith": "a"}, "str_startswith", "startswith(`c`, 'a')"),
    ({"str_endswith": "a"}, "str_endswith", "endswith(`c`, 'a')"),
    (
        {"str_length": {"min_value": 1, "max_value": 9}},
        "str_length",
        "length(`c`) >= 1 AND length(`c`) <= 9",
    ),
]


def declared(field: object) -> Column:
    model = type("M", (pa.DataFrameModel,), {"__annotations__": {"c": T.StringType}, "c": field})
    return columns_of(model)[0]


@pytest.mark.parametrize(("rule", "name", "predicate"), CHECKS)
def test_every_check_of_the_schema_becomes_a_predicate(rule: dict, name: str, predicate: str):
    assert declared(pa.Field(**rule)).checks == ((name, predicate),)


def test_types_keep_their_precision_and_elements():
    class Prices(pa.DataFrameModel):
        price: T.DecimalType(18, 2) = pa.Field(ge=Decimal("1.50"))  # type: ignore[valid-type]
        cost: Annotated[T.DecimalType, 12, 4] = pa.Field(nullable=True, description="in dollars")
        tags: T.ArrayType(T.StringType())  # type: ignore[valid-type]

    assert columns_of(Prices) == (
        Column(
            "price",
            "decimal(18,2)",
            nullable=False,
            checks=(("greater_than_or_equal_to", "`price` >= 1.50"),),
        ),
        Column("cost", "decimal(12,4)", nullable=True, description="in dollars"),
        Column("tags", "array<string>", nullable=False),
    )


def test_key_and_time_are_shown_and_what_says_so():
    declared = pa.DataFrameSchema(
        {
            "day": pa.Column(T.DateType()),
            "shop": pa.Column(T.StringType(), metadata={"shown": False}),
            "amount": pa.Column(T.DoubleType(), metadata={"shown": True}),
            "note": pa.Column(T.StringType()),
        }
    )

    class Sales:
        @classmethod
        def to_schema(cls) -> pa.DataFrameSchema:
            return declared

    model = a_model(
        unique_key=["day", "shop"], columns=columns_of(Sales), kind=IncrementalByTimeRange("day")
    )
    assert (model.shown, model.hidden) == ({"day", "amount"}, {"shop"})


def test_a_word_in_the_place_of_shown_is_refused():
    with pytest.raises(
        DeclarationError, match=r"column 'c': found shown='no'; expected True, False or None"
    ):
        Column("c", "int", shown="no")  # type: ignore[arg-type]


def test_a_check_that_is_no_predicate_over_a_row_is_refused_with_the_known_ones():
    class Odd(pa.DataFrameModel):
        c: T.StringType

        @pa.check("c")
        def sums_up(cls, data: object) -> bool:  # noqa: ARG002, N805
            return True

    with pytest.raises(DeclarationError, match=r"'sums_up'.*greater_than.*row_rule"):
        columns_of(Odd)


def schema(*checks: pa.Check, **asked: object) -> type[SchemaModel]:
    class Built:
        @classmethod
        def to_schema(cls) -> pa.DataFrameSchema:
            return pa.DataFrameSchema({"c": pa.Column(T.IntegerType(), checks=[*checks])}, **asked)  # type: ignore[arg-type]

    return Built


def an_audit(audited: tuple[Audit, ...], name: str) -> RowRule:
    (found,) = (audit for audit in audited if audit.name == name)
    assert isinstance(found, RowRule)
    return found


CUSTOM = [
    pa.Check(lambda _: True),
    pa.Check(lambda _: True, name="mine"),
    pa.Check(lambda _: False, name="greater_than", statistics={"min_value": 1}),
    pa.Check(lambda _: False, name="isin"),
]


@pytest.mark.parametrize("custom", CUSTOM, ids=str)
def test_a_custom_check_is_refused_whatever_its_name(custom: pa.Check):
    with pytest.raises(
        DeclarationError, match=r"never left out.*row_rule\(\), sql_audit\(\) or python_audit"
    ):
        columns_of(schema(pa.Check.gt(0), custom))
    with pytest.raises(DeclarationError, match="never left out"):
        columns_of(schema(checks=[custom]))


def test_a_registered_check_is_refused():
    @register_check_method(statistics=["most"], supported_types=[])
    def below(_: object, *, most: int) -> bool:
        return most > 0

    with pytest.raises(DeclarationError, match="declares the check 'below'"):
        declared(pa.Field(below={"most": 2}))


def test_a_check_that_raises_a_warning_only_warns():
    column = declared(pa.Field(gt=1, raise_warning=True))
    audits = audits_of(a_model(columns=[*COLUMNS, column]))

    assert column.warns == ("greater_than",)
    assert an_audit(audits, "greater_than_c").severity is Severity.WARNING
    assert an_audit(audits_of(a_model(columns=[*COLUMNS, declared(pa.Field(gt=1))])), "greater_than_c").severity is Severity.BLOCKING  # fmt: skip


def test_a_check_that_does_not_ignore_nulls_fails_them():
    assert declared(pa.Field(gt=1, ignore_na=False)).checks == (
        ("greater_than", "coalesce(`c` > 1, FALSE)"),
    )


def test_two_checks_of_one_name_are_two_audits_and_the_stricter_severity_counts():
    (column,) = columns_of(schema(pa.Check.ne(1), pa.Check.ne(2, raise_warning=True)))
    audits = audits_of(a_model(columns=[*COLUMNS, column]))

    assert an_audit(audits, "not_equal_to_c").predicate == "`c` <> 1"
    assert an_audit(audits, "not_equal_to_c_2").predicate == "`c` <> 2"
    assert column.warns == ()


@pytest.mark.parametrize("asked", [{"drop_invalid_rows": True}, {"parsers": [object()]}])
def test_a_schema_that_would_change_rows_is_refused(asked: dict[str, object]):
    built = SimpleNamespace(unique=None, checks=[], columns={}, **asked)
    model = SimpleNamespace(to_schema=lambda: built)

    with pytest.raises(DeclarationError, match=f"'{next(iter(asked))}', which is not run here"):
        columns_of(model)  # type: ignore[arg-type]


def test_a_unique_column_is_audited_whatever_its_name():
    model = a_model(columns=[*COLUMNS, Column("grain", "string", unique=True)])

    unique_columns = [audit.columns for audit in audits_of(model) if isinstance(audit, Unique)]

    assert unique_columns == [model.key, ("grain",)]


def test_a_column_that_is_a_pattern_is_refused():
    with pytest.raises(DeclarationError, match="column '\\^c' declares pandera's 'regex'"):
        declared(pa.Field(alias="^c", regex=True))


def test_a_rule_over_the_whole_schema_is_refused_not_forgotten():
    class Pairs(pa.DataFrameModel):
        a: T.StringType
        b: T.StringType

        class Config:  # type: ignore[override]
            unique = ["a", "b"]  # noqa: RUF012

    with pytest.raises(DeclarationError, match="declares the check 'unique'"):
        columns_of(Pairs)


class Channel(str, Enum):  # noqa: UP042 - authors write it so
    EMAIL = "email"


class Size(IntEnum):
    LARGE = 3


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (True, "TRUE"),
        (7, "7"),
        (1e-05, "1e-05"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (float("-inf"), "CAST('-inf' AS DOUBLE)"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (dt.date(2024, 1, 31), "DATE '2024-01-31'"),
        (dt.datetime(2024, 1, 31, 6, tzinfo=dt.UTC), "TIMESTAMP '2024-01-31 06:00:00+00:00'"),
        (dt.datetime(2024, 1, 31, 6), "TIMESTAMP '2024-01-31 06:00:00+00:00'"),  # noqa: DTZ001
        (Channel.EMAIL, "'email'"),
        (Size.LARGE, "3"),
        ("it's", "'it\\'s'"),
        ("back\\slash'", "'back\\\\slash\\''"),
        ("'; DROP TABLE x; --", "'\\'; DROP TABLE x; --'"),
    ],
)
def test_values_become_typed_literals_with_their_text_escaped(value: object, literal: str):
    assert sql_literal(value) == literal


def test_a_list_of_values_is_the_same_rule_in_any_order():
    assert accepted_values("c", ("b", "a")) == accepted_values("c", ("a", "b"))
    assert accepted_values("c", ("a", None)).predicate == "`c` IN ('a')"
    assert declared(pa.Field(isin=["b'", "a"])).checks == (("isin", "`c` IN ('a', 'b\\'')"),)


def test_a_single_text_is_no_list_of_values():
    with pytest.raises(
        DeclarationError, match="the single value 'paid' as values; expected a list"
    ):
        accepted_values("c", "paid")
    with pytest.raises(
        DeclarationError, match="the single value 'north' as entities; expected a l"
    ):
        complete("c", entities="north")


@pytest.mark.parametrize(
    ("name", "dtype", "words"),
    [
        (3, "int", "column 3: found 3 as name; expected the name of a column"),
        (
            "c",
            int,
            r"column 'c': found <class 'int'> as dtype; expected a type of Spark as text, s",
        ),
    ],
)
def test_name_and_type_of_a_column_are_texts(name: Any, dtype: Any, words: str):  # noqa: ANN401
    with pytest.raises(DeclarationError, match=words):
        Column(name, dtype)


def test_short_forms_of_audits_say_what_they_mean():
    assert not_null("a`b", warn=True).predicate == "`a``b` IS NOT NULL"
    assert not_null("c", warn=True).severity is Severity.WARNING
    assert accepted_range("c", 0, None).predicate == "`c` >= 0"
    assert accepted_range("c", 0, Decimal("1.5")).predicate == "`c` >= 0 AND `c` <= 1.5"  # type: ignore[arg-type]


def test_an_audit_without_anything_to_hold_rows_against_is_refused():
    with pytest.raises(DeclarationError, match="has no bound, so it could not fail"):
        accepted_range("c", None, None)
    with pytest.raises(DeclarationError, match="has no value, so it could not fail"):
        accepted_values("c", ())
    with pytest.raises(DeclarationError, match="has no value, so it could not fail"):
        accepted_values("c", (None,))
    with pytest.raises(DeclarationError, match="has no column, so it could not fail"):
        unique()
    with pytest.raises(DeclarationError, match="has no key of a row, so it could not fail"):
        known_rows([({}, {"c": 1})])


@pytest.mark.parametrize("fraction", [-0.1, float("nan"), float("inf")])
def test_a_fraction_that_is_no_amount_is_refused_before_a_batch_is_judged(fraction: float):
    with pytest.raises(DeclarationError, match="a fraction of 0 or more"):
        row_count_within(fraction)
    with pytest.raises(DeclarationError, match="bounds that are no NaN"):
        accepted_range("c", 0, float("nan"))
    with pytest.raises(DeclarationError, match="the lower bound first"):
        accepted_range("c", 5, 1)


@pytest.mark.parametrize(
    ("low", "high"),
    [(date(2024, 1, 1), datetime(2024, 2, 1, tzinfo=UTC)), ("9", "10"), ("2024-01-01", date.max)],
    ids=["instants", "texts", "both"],
)
def test_bounds_that_are_no_numbers_are_compared_by_spark_alone(low: Any, high: Any):  # noqa: ANN401
    assert accepted_range("c", low, high).predicate.startswith("`c` >= ")


def test_a_tolerance_is_a_positive_number_of_a_float():
    assert Column("c", "double", tolerance=1).tolerance == 1.0
    assert Column("c", "float", tolerance=Decimal("0.01")).tolerance == 0.01  # type: ignore[arg-type]
    assert declared(pa.Field()).tolerance is None


@pytest.mark.parametrize("tolerance", [0, -1e-9, 1e-301, float("nan"), float("inf"), "1", True])
def test_a_tolerance_that_is_no_positive_number_is_refused(tolerance: object):
    with pytest.raises(DeclarationError, match=r"column 'c'.*at least 1e-300"):
        Column("c", "double", tolerance=tolerance)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["decimal(18,2)", "bigint", "array<double>", "string"])
def test_a_tolerance_on_another_type_than_a_float_is_refused(dtype: str):
    with pytest.raises(DeclarationError, match="found a tolerance on the type"):
        Column("c", dtype, tolerance=1e-9)


def test_a_schema_declares_a_tolerance_as_metadata_of_a_field():
    class Rates(pa.DataFrameModel):
        rate: T.DoubleType = pa.Field(metadata={"tolerance": 1e-9})

    assert columns_of(Rates)[0].tolerance == 1e-9


def test_a_tolerance_on_a_column_of_a_source_or_of_a_key_is_refused():
    columns = (Column("ds", "date"), Column("v", "double", tolerance=0.1))
    with pytest.raises(DeclarationError, match="every change of a source counts"):
        a_source(columns=columns)
    with pytest.raises(DeclarationError, match="none on a column that identifies rows"):
        a_model(columns=columns, unique_key=["ds", "v"])


WRITTEN = (
    "decimal(10,2)", "array<struct<a:int,b:string>>", "map<string,bigint>", "timestamp_ntz",
    "variant", "void", " Bigint ", "struct<`a:b`: int, c string not null comment 'd: e'>",
    "struct<array: int, map: array < double >>", "dec(5)", "long",
    "struct<time: int, char: string, `string collate x`: int>",
    r"struct<a: int comment 'it\'s: so'>", r'struct<a: int comment "say \": so">',
)  # fmt: skip


@pytest.mark.parametrize("dtype", WRITTEN)
def test_a_type_of_spark_is_taken_however_it_is_written(dtype: str):
    require_types("model 'web.visits'", [Column("a", dtype)])


def test_bool_is_still_taken_for_boolean():
    require_types("model 'web.visits'", [Column("is_new", "bool")])

    assert same_type("boolean", "bool")


@pytest.mark.parametrize(
    ("dtype", "spelling"),
    [
        ("numeric(18, 2)", "decimal(18,2)"),
        ("DEC(5)", "decimal(5,0)"),
        ("decimal", "decimal(10,0)"),
        ("Array<Long>", "array<bigint>"),
        ("struct<long: integer, price: numeric>", "struct<long:int,price:decimal(10,0)>"),
        ("struct<a int, `b c` array<long>>", "struct<a:int,bc:array<bigint>>"),
        (r"struct<a: integer NOT NULL COMMENT 'it\'s, a long', b:date>", "struct<a:int,b:date>"),
        ("timestamp_ltz", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("real", "float"),
        ("byte", "tinyint"),
        ("interval day to second", "intervaldaytosecond"),
    ],
)
def test_a_type_has_one_spelling_however_it_is_written(dtype: str, spelling: str):
    assert canonical_type(dtype) == canonical_type(spelling) == spelling


def test_a_column_of_another_spelling_has_all_that_its_type_has():
    assert all(is_numeric(dtype) for dtype in ("real", "BYTE", "short", "dec(5)", "long"))
    assert not any(is_numeric(dtype) for dtype in ("string", "interval year", "array<int>", "date"))
    assert Column("share", "REAL", tolerance=0.5).tolerance == 0.5
    a_graph(
        a_model(
            columns=[*a_model().schema, Column("at", "timestamp_ltz")],
            sql="SELECT ds, id, cost, at FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
            audits=[fresh("at", "6h")],
        )
    )


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        (
            "bigit",
            "'bigit'; expected a type of Spark, such as bigint, string, date or decimal(18,2).",
        ),
        ("array<bigit>", "'bigit' in 'array<bigit>'; expected a type of Spark"),
        ("map<bigit,int>", "'bigit' in 'map<bigit,int>'; expected a type of Spark"),
        ("struct<a:int,b:flot>", "'flot' in 'struct<a:int,b:flot>'; expected a type of Spark"),
        ("text", "'text'; expected a type of Spark"),
    ],
)
def test_a_type_that_spark_does_not_have_is_refused_when_the_catalog_loads(dtype: str, said: str):
    model = a_model(columns=[*COLUMNS, Column("amount", dtype)])

    with pytest.raises(DeclarationError) as caught:
        build_graph([model], [a_source()])

    assert str(caught.value).startswith(
        f"column 'amount' of model 'web.visits': found the type {said}"
    )


@pytest.mark.parametrize(
    ("dtype", "instead"),
    [
        ("varchar(10)", "string"),
        ("map<string, varchar(10)>", "string"),
        ("struct<`a b` varchar(10) not null>", "string"),
        (" CHAR(3)", "string"),
        ("array<character(3)>", "string"),
        ("string collate UTF8_LCASE", "string without a collation"),
        ("struct<a: STRING COLLATE UNICODE>", "string without a collation"),
        ("interval day to second", "a number of days, months or seconds"),
        ("time(6)", "a timestamp, or a number of seconds"),
        ("geometry(4326)", "binary, as WKB"),
        ("array<geography(4326)>", "binary, as WKB"),
    ],
)
def test_a_type_that_no_table_gives_back_is_refused_with_another_one(dtype: str, instead: str):
    message = re.escape(
        f"found the type '{dtype}', which no Delta table gives back; expected {instead}"
    )

    for node in ("model", "source"):
        with pytest.raises(DeclarationError, match=f"column 'a' of {node}.*{message}$"):
            _build(node, Column("a", dtype))


def _build(node: str, column: Column) -> None:
    source = a_source(columns=[*COLUMNS, column] if node == "source" else COLUMNS)
    models = [a_model(columns=[*COLUMNS, column])] if node == "model" else []
    build_graph(models, [source])


@pytest.mark.parametrize("dtype", ["map<string,int>", "variant", "array<struct<a: map<int,int>>>"])
@pytest.mark.parametrize(
    ("declared", "what"),
    [
        ({"unique_key": ["ds", "a"]}, "the key"),
        ({"kind": IncrementalByUniqueKey("ds", latest_by="a")}, "latest_by"),
        ({"audits": [unique("ds", "a")]}, "the audit unique_ds_a"),
    ],
    ids=["key", "latest", "unique"],
)
def test_what_is_compared_can_be_compared(dtype: str, declared: dict[str, Any], what: str):
    model = a_model(columns=[*COLUMNS, Column("a", dtype)], **declared)

    with pytest.raises(
        DeclarationError, match=f"found the type '{dtype}' in {what}; expected values"
    ):
        build_graph([model], [a_source()])


def test_a_source_declares_types_of_spark_too():
    source = a_source(columns=[Column("ds", "dat")])

    with pytest.raises(DeclarationError, match=r"column 'ds' of source .* Did you mean 'date'"):
        build_graph([], [source])


@pytest.mark.spark
def test_every_word_that_spark_takes_for_a_type_is_known(spark: SparkSession):
    words = {
        row.keyword.lower() for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()
    }

    taken = {word for word in words if _is_type(word) or _is_type(f"{word}(3)")}

    assert {"bigint", "timestamp_ntz", "void", "varchar"} <= taken
    assert taken <= TYPES


def _is_type(text: str) -> bool:
    try:
        T.DataType.fromDDL(text)
    except ParseException:
        return False
    return True


def test_columns_are_listed_as_columns():
    with pytest.raises(DeclarationError, match=r"'id' as one of columns; expected Column\("):
        columns_of(["id"])  # type: ignore[list-item]
