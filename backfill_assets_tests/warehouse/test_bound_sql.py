# ruff: noqa: S608, ISC004 - the SQL is the tests' own
"""What a bound query gives on Spark, against the same query where tables have their own names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.sql.query import SqlQuery, parameters_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AT = datetime(2024, 1, 2, tzinfo=UTC)
BY_HAND = "(VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02'), (2, NULL)) AS orders(id, ds)"
QUERIES = [
    "SELECT orders.id, ds FROM @ WHERE ds >= :start_ds",
    "SELECT o.id FROM @ o WHERE o.ds IS DISTINCT FROM :start_ds",
    "WITH orders AS (SELECT id + 1 AS id FROM @) SELECT a.id, b.id FROM orders a, @ AS b",
    "WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b), b AS (SELECT 2 AS x) "
    "SELECT * FROM a, b, @",
    "SELECT * FROM @ PIVOT (count(ds) FOR id IN (1, 2))",
    "FROM @ |> WHERE orders.id = 2 |> AGGREGATE count(*) AS n GROUP BY id",
    "FROM @ SELECT id",
    "SELECT orders.* FROM @ LATERAL VIEW explode(array(1, 2)) v AS x",
    "SELECT id FROM @ TABLESAMPLE (100 PERCENT) t WHERE t.id > 1",
    "SELECT /*+ BROADCAST(orders) */ 'O''Brien -- :start_ds' AS t, r'\\d', 1e0 FROM @",
    "SELECT id FROM (@ CROSS JOIN (SELECT 7 AS seven)) ORDER BY ALL LIMIT 2",
    "SELECT id, count(*) FROM @ GROUP BY ALL QUALIFY row_number() OVER (ORDER BY id DESC) = 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_an_upstream_is_read_as_a_table_of_its_name(spark: SparkSession, query: str):
    spark.sql(f"SELECT * FROM {BY_HAND}").createOrReplaceTempView("orders")
    spark.table("orders").createOrReplaceTempView("_upstream__shop__orders")
    by_hand = query.replace("@", "orders").replace(":start_ds", "DATE'2024-01-02'")
    if query.startswith("WITH orders"):  # whose name hides the table's
        by_hand = by_hand.replace("orders AS b", "_upstream__shop__orders AS b")
    ours = query.replace("@", "Shop.orders")
    bound = SqlQuery(ours).bind(
        parameters_of(AT, AT, AT, AT), {"shop.orders": "_upstream__shop__orders"}
    )
    expected = spark.sql(by_hand.replace("-- DATE'2024-01-02'", "-- :start_ds"))
    found = spark.sql(bound)
    assert found.schema == expected.schema
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    assert found.count() > 0
