"""Every example query that Spark documents for its own functions, bound by us and by hand.

An example has nothing to replace, so its own text must come through the binding as it is; and it is
put into a query with a parameter and an upstream, which is bound by us and written by hand.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.sql.query import SqlQuery, parameters_of
from backfill_assets.models.sql.sql_volatility import VOLATILE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AT = datetime(2024, 1, 1, tzinfo=UTC)
PARAMETERS = parameters_of(AT, AT, AT, AT)
AROUND = "WITH q AS ({}) SELECT q.*, (SELECT count(*) FROM {}) AS n, {} AS ds FROM q"
UNSTEADY = frozenset(
    {
        "aes_encrypt", "java_method", "reflect", "try_reflect", "curdate", "current_date", "current_time", "current_timestamp",
        "localtimestamp", "monotonically_increasing_id", "now", "rand", "randn", "random",
        "randstr", "shuffle", "uniform", "unix_timestamp", "uuid",
    }
)  # fmt: skip
"""Functions whose examples may give another value each time: their schema alone is compared."""

REWRITTEN = (
    "approx_percentile",
    "approx_top_k",
    "base64",
    "bit_count",
    "ceil",
    "ceiling",
    "convert_timezone",
    "current_time",
    "date_format",
    "date_part",
    "datediff",
    "extract",
    "floor",
    "from_json",
    "get_json_object",
    "hour",
    "ilike",
    "listagg",
    "log",
    "log10",
    "make_time",
    "make_timestamp",
    "make_valid_utf8",
    "max_by",
    "min_by",
    "mode",
    "parse_json",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "regexp_extract",
    "regexp_instr",
    "regexp_replace",
    "split",
    "string_agg",
    "time_diff",
    "time_to_millis",
    "time_trunc",
    "to_char",
    "to_date",
    "to_json",
    "to_number",
    "to_time",
    "to_timestamp",
    "to_varchar",
    "trunc",
    "try_make_timestamp",
    "try_to_date",
    "try_to_time",
    "variant_get",
)
"""Functions that an analysis of SQL is known to rewrite: their examples are always run."""


def examples(spark: SparkSession, functions: Iterable[str]) -> list[tuple[str, str]]:
    """Give (function, query) as DESCRIBE FUNCTION EXTENDED tells them."""
    found: list[tuple[str, str]] = []
    for name in functions:
        rows = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        text = (
            "\n".join(row[0] for row in rows).partition("Examples:")[2].partition("\n    Note:")[0]
        )
        queries = re.findall(r"^\s*> (.*?);\s*$", text, re.MULTILINE | re.DOTALL)
        found += [(name, query) for query in queries if not query.startswith("SET ")]
    return found


def functions_of(spark: SparkSession) -> list[str]:
    return [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]


def answer(spark: SparkSession, name: str, query: str) -> tuple[str, object]:
    """The schema and rows of a query, or the kind of its error: some examples are of errors."""
    try:
        frame = spark.sql(query)
        rows = [] if name in UNSTEADY else sorted(map(repr, frame.collect()))
        return frame.schema.json(), rows
    except Exception as error:  # noqa: BLE001 - whatever Spark says of it, it says of both
        return type(error).__name__, getattr(error, "getCondition", str)()


def differing(spark: SparkSession, found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    spark.range(3).createOrReplaceTempView("_upstream__shop__one")
    views = {"shop.one": "_upstream__shop__one"}
    wrong: list[tuple[str, str]] = []
    for name, query in found:
        ours = SqlQuery(AROUND.format(query, "shop.one", ":start_ds")).bind(PARAMETERS, views)
        by_hand = AROUND.format(query, views["shop.one"], "CAST('2024-01-01' AS DATE)")
        as_written = SqlQuery(query).bind(PARAMETERS, views) == query
        if not as_written or answer(spark, name, ours) != answer(spark, name, by_hand):
            wrong.append((name, query))
    return wrong


def test_sparks_own_examples_run_as_they_are_written(spark: SparkSession):
    chosen = [*REWRITTEN, *functions_of(spark)[::40]]
    found = examples(spark, dict.fromkeys(chosen))
    assert len(found) > 100
    assert differing(spark, found) == []


@pytest.mark.slow
def test_every_example_of_every_function_runs_as_it_is_written(spark: SparkSession):
    found = examples(spark, functions_of(spark))
    print(f"{len(found)} examples")  # noqa: T201 - a number for those who ask
    assert len(found) > 1000
    assert differing(spark, found) == []


def test_every_example_is_taken_as_it_is_by_the_binding(spark: SparkSession):
    found = examples(spark, functions_of(spark))
    assert [
        example for example in found if SqlQuery(example[1]).bind(PARAMETERS, {}) != example[1]
    ] == []


BY_ORDER = frozenset(
    {
        "any_value", "array_agg", "collect_list", "collect_set", "first", "first_value", "last",
        "last_value", "listagg", "max_by", "min_by", "mode", "string_agg",
    }
)  # fmt: skip
"""Functions that Spark calls non-deterministic because the order of rows may be."""


def test_what_spark_calls_non_deterministic_is_volatile_or_a_matter_of_order(spark: SparkSession):
    noted: set[str] = set()
    for name in functions_of(spark):
        rows = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        if "non-deterministic" in "\n".join(row[0] for row in rows).lower():
            noted.add(name)
    assert {"rand", "uuid", "first"} < noted
    assert noted <= VOLATILE | BY_ORDER
