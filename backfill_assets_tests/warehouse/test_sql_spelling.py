# ruff: noqa: S608 - the SQL is the tests' own
"""What the analysis calls spelling is one program for Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from backfill_assets.planning.change.sql_tree import (
    EXACT_AGGREGATES,
    GENERATORS,
    ORDERED_AGGREGATES,
)
from backfill_assets_tests.models.test_sql_analysis import SPELLINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS = "(1, 1), (1, NULL), (2, 5), (NULL, NULL), (NULL, 3), (2, 5)"


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> Iterator[SparkSession]:
    for name in ("t", "u"):
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS VALUES {ROWS} AS v(a, b)")
    yield spark
    for name in ("t", "u"):
        spark.catalog.dropTempView(name)


def test_every_spelling_gives_the_same_types_and_rows_in_spark(views: SparkSession):
    for text, other in SPELLINGS:
        first, second = views.sql(text), views.sql(other)
        assert first.dtypes == second.dtypes, other
        ours, theirs = first.collect(), second.collect()
        in_order = "ORDER BY" in text
        assert ours == theirs if in_order else Counter(ours) == Counter(theirs), other


def test_every_aggregate_and_every_generator_of_spark_is_known_to_the_analysis(
    spark: SparkSession,
):
    classes = {
        function.name: function.className
        for function in spark.catalog.listFunctions()
        if "." not in function.name
    }
    folding = {name for name, kind in classes.items() if ".expressions.aggregate." in str(kind)}
    known = EXACT_AGGREGATES | ORDERED_AGGREGATES

    assert len(folding) > 40
    assert folding - known - NO_AGGREGATES == set()
    assert known - classes.keys() == set()
    assert {"explode", "stack", "inline", "json_tuple"} <= GENERATORS


NO_AGGREGATES = frozenset[str]()
