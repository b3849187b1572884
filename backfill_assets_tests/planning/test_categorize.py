# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import sqlglot
from sqlglot import exp

from backfill_assets.intervals import Daily, Hourly, Whole
from backfill_assets.models.audit import not_null
from backfill_assets.models.column import Column
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.kind import Full, IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.pipelines import marketing
from backfill_assets.planning.change.categorize import (
    DeclarationDifference,
    affected,
    both,
    difference,
)
from backfill_assets.planning.change.deriving import derived
from backfill_assets.planning.change.sql_change import sql_change, sql_effect
from backfill_assets.planning.change.sql_edit import SqlEdit
from backfill_assets.planning.plan.request import Category
from backfill_assets_tests.builders import COLUMNS, a_model
from backfill_assets_tests.stories.edits import NEW_COLUMNS, add_conversion_value

BOUND = "WHERE ds >= :start_ds AND ds < :end_ds"
SQL = f"SELECT ds, id, cost FROM web.events {BOUND}"
MODEL = a_model(sql=SQL)
NOTHING: frozenset[str] = frozenset()


def sql_model(sql: str) -> Model:
    """A model whose query names its outputs in the first SELECT of the text."""
    query = cast("exp.Query", sqlglot.parse_one(sql, dialect="spark"))
    outputs = [output.lower() for output in query.named_selects]
    columns = [Column(name, "string") for name in outputs if name not in ("", "*", "ds", "id")]
    key = [Column("ds", "date"), Column("id", "bigint")]
    return a_model(sql=sql, columns=[*key, *columns], upstreams=["s.e", "s.f", "s.g"])


def edited(old: str, new: str) -> DeclarationDifference:
    return difference(sql_model(old), sql_model(new))


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({"owner": "team:other"}, "owner"),
        ({"tags": {"domain": "web"}}, "tags"),
        ({"description": "other words"}, "description"),
        ({"audits": [not_null("id")]}, "audits"),
        ({"batch_size": 7}, "batch size"),
        ({"late_window": 3}, "late window"),
        ({"spark": {"spark.sql.shuffle.partitions": 4}}, "Spark settings"),
        ({"cadence": Daily(start="2023-01-01")}, "start"),
        ({"cadence": Daily(start="2024-01-01", cron="0 5 * * *")}, "cron"),
        ({"upstreams": [Upstream("web.events", reopens=Reopens.ALL)]}, "upstreams"),
        ({"columns": [*COLUMNS[:-1], replace(COLUMNS[-1], nullable=False)]}, "columns"),
        ({"grain": "One row, per day and id!"}, "grain"),
    ],
)
def test_words_and_pace_are_metadata_and_are_named(edit: dict[str, Any], named: str):
    found = difference(MODEL, replace(MODEL, **edit))

    assert (found.category, found.rows, found.columns) == (Category.METADATA, False, NOTHING)
    assert named in found.why


def test_other_ranges_of_a_key_are_metadata():
    whole = a_model(kind=Full(), cadence=Whole(), sql="SELECT ds, id, cost FROM web.events")
    ranged = replace(whole, key_ranges=KeyRanges("id", [7]))
    for old, new in ((whole, ranged), (ranged, replace(ranged, key_ranges=KeyRanges("id", [8])))):
        found = difference(old, new)
        assert found.category is Category.METADATA
        assert "key ranges" in found.why


@pytest.mark.parametrize(
    "sql",
    [
        SQL.lower(),
        f"-- why\n{SQL} AND 1 = 1 AND 2 > 1",
        f"SELECT e.ds, e.`id`, e.cost FROM Web.Events AS e {BOUND}".replace("ds >=", "e.ds >="),
        SQL.replace("SELECT", "SELECT /*+ REPARTITION(3) */"),
        f"WITH unused AS (SELECT id FROM web.events) {SQL}",
    ],
)
def test_a_query_that_means_the_same_is_metadata(sql: str):
    named = sql.replace("AS e WHERE", "AS events WHERE").replace("e.", "events.")
    found = difference(MODEL, a_model(sql=named if "`" in sql else sql))
    assert found.category is Category.METADATA


@pytest.mark.parametrize(
    "edit",
    [
        {"grain": "one row per month"},
        {"unique_key": ["id"]},
        {"kind": IncrementalByUniqueKey("ds")},
        {"cadence": Daily(start="2024-01-01", tz="Europe/Berlin")},
        {"cadence": Hourly(start="2024-01-01")},
        {"upstreams": [Upstream("web.events", lookback=1)]},
        {"columns": [COLUMNS[0], Column("id", "string"), COLUMNS[2]]},
        {"query": FunctionQuery("f", "def f(inputs, interval):\n    return 1\n")},
    ],
)
def test_what_decides_how_rows_become_history_is_breaking(edit: dict[str, Any]):
    found = difference(MODEL, replace(MODEL, **edit))
    assert (found.category, found.rows, found.columns) == (Category.BREAKING, True, None)


def test_a_delete_policy_decides_on_rows_only_where_rows_are_merged():
    merged = replace(MODEL, kind=IncrementalByUniqueKey("ds"))
    assert difference(replace(merged, deletes="none"), merged).category is Category.BREAKING

    found = difference(replace(MODEL, deletes="none"), MODEL)

    assert (found.category, found.why) == (Category.METADATA, "only delete policy")


def test_another_dedupe_order_or_time_column_is_breaking():
    columns = [*COLUMNS, Column("at", "date")]
    old = a_model(columns=columns, kind=IncrementalByUniqueKey("ds", latest_by="cost"))
    for kind in (IncrementalByUniqueKey("ds"), IncrementalByUniqueKey("at", latest_by="cost")):
        assert difference(old, replace(old, kind=kind)).category is Category.BREAKING


def test_another_type_of_a_column_concerns_those_who_read_it():
    found = difference(MODEL, replace(MODEL, columns=[*COLUMNS[:-1], Column("cost", "double")]))

    assert found.category is Category.BREAKING
    assert (found.rows, found.columns) == (False, {"cost"})


def test_another_bundle_is_breaking_and_a_reformatted_one_is_not():
    model = replace(MODEL, query=FunctionQuery("f", "def f(inputs, interval):\n    return 1\n"))
    same = replace(MODEL, query=FunctionQuery("f", "def f(inputs,interval): return (1)"))
    other = replace(MODEL, query=FunctionQuery("f", "def f(inputs, interval):\n    return 2\n"))

    assert difference(model, same).category is Category.METADATA
    found = difference(model, other)
    assert (found.category, found.rows, found.columns) == (Category.BREAKING, True, None)


ADDITIVE = [
    ("SELECT a FROM s.e", "SELECT a, b FROM s.e", {"b"}),
    ("SELECT a FROM s.e", "SELECT b, a FROM s.e", {"b"}),
    ("SELECT a, SUM(b) AS s FROM s.e GROUP BY a",
     "SELECT a, SUM(b) AS s, AVG(c) AS m FROM s.e GROUP BY a", {"m"}),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY 1",
     "SELECT MAX(z) AS z, a, COUNT(*) AS n FROM s.e GROUP BY 2", {"z"}),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY ALL",
     "SELECT a, COUNT(*) AS n, SUM(x) AS x FROM s.e GROUP BY ALL", {"x"}),
    ("SELECT COUNT(*) AS n FROM s.e", "SELECT COUNT(*) AS n, SUM(b) AS s FROM s.e", {"s"}),
    ("SELECT a FROM s.e", "SELECT a, ROW_NUMBER() OVER (ORDER BY b) AS r FROM s.e", {"r"}),
    ("SELECT a FROM s.e", "SELECT a, SUM(b) OVER (PARTITION BY a) AS r FROM s.e", {"r"}),
    ("SELECT a FROM s.e",
     "SELECT a, SUM(b) FILTER (WHERE c > 1) OVER (PARTITION BY a) AS r FROM s.e", {"r"}),
    ("SELECT a FROM s.e", "SELECT a, (SELECT MAX(x) FROM s.f) AS m FROM s.e", {"m"}),
    ("SELECT a FROM s.e", "SELECT a, (SELECT EXPLODE(x) FROM s.f) AS m FROM s.e", {"m"}),
    ("SELECT a FROM s.e UNION ALL SELECT a FROM s.f",
     "SELECT a, b FROM s.e UNION ALL SELECT a, c FROM s.f", {"b"}),
    ("WITH c AS (SELECT a FROM s.e) SELECT * FROM c",
     "WITH c AS (SELECT a, b FROM s.e) SELECT * FROM c", set()),  # by its declaration
    ("WITH c AS (SELECT a FROM s.e) SELECT a FROM c",
     "WITH c AS (SELECT a, b FROM s.e) SELECT a, b * 2 AS d FROM c", {"d"}),
    ("SELECT a FROM s.e NATURAL JOIN s.f", "SELECT a, b FROM s.e NATURAL JOIN s.f", {"b"}),
    ("WITH c AS (SELECT a FROM s.e) SELECT a FROM c",
     "WITH d AS (SELECT 1 AS x), c AS (SELECT a FROM s.e) SELECT a, 1 AS m FROM c", {"m"}),
    ("WITH d AS (SELECT 1 AS x), c AS (SELECT a FROM s.e) SELECT a FROM c",
     "WITH c AS (SELECT a FROM s.e) SELECT a, 1 AS m FROM c", {"m"}),
    ("WITH c AS (SELECT a FROM s.e) SELECT a FROM (SELECT a FROM c)",
     "WITH c AS (SELECT a FROM s.e) SELECT a, 1 AS m FROM (WITH d AS (SELECT 1 AS x) SELECT a FROM c)", {"m"}),
    ("SELECT k AS a FROM s.e JOIN s.f USING (k) PIVOT (SUM(x) FOR n IN (1, 2))",
     "SELECT k AS a, `1` AS b FROM s.e JOIN s.f USING (k) PIVOT (SUM(x) FOR n IN (1, 2))", {"b"}),
    ("SELECT a FROM s.e LATERAL VIEW EXPLODE(l) t AS v",
     "SELECT a, v FROM s.e LATERAL VIEW EXPLODE(l) t AS v", {"v"}),
    ("SELECT a FROM s.e", "SELECT a, my_own(b) AS m FROM s.e", {"m"}),
    ("SELECT b + 1 AS c FROM s.e", "SELECT b + 1 AS c, b FROM s.e", {"b"}),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY a, b",
     "SELECT a, a + 1 AS b, COUNT(*) AS n FROM s.e GROUP BY a, b", {"b"}),
    ("SELECT a FROM s.e GROUP BY a",
     "SELECT a, a + 1 AS b, COUNT(*) AS n FROM s.e GROUP BY a", {"b", "n"}),
    ("SELECT 1 AS a FROM s.e GROUP BY k", "SELECT 1 AS a, my_own(b) AS m FROM s.e GROUP BY k", {"m"}),
    ("SELECT COUNT(*) AS n FROM s.e", "SELECT COUNT(*) AS n, my_own(b) AS m FROM s.e", {"m"}),
    ("SELECT a, g.* FROM s.e", "SELECT a, g.*, b FROM s.e", {"b"}),
    ("SELECT e.a FROM s.e CROSS JOIN s.f", "SELECT e.a, f.b AS e FROM s.e CROSS JOIN s.f", {"e"}),
    ("WITH c AS (SELECT b FROM s.f) SELECT a FROM s.e WHERE b IN (SELECT b FROM c)",
     "WITH c AS (SELECT b, d FROM s.f) SELECT a, 1 AS m FROM s.e WHERE b IN (SELECT b FROM c)", {"m"}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "columns"), ADDITIVE)
def test_columns_that_only_come_are_not_breaking(old: str, new: str, columns: set[str]):
    found = edited(old, new)

    assert found.category is Category.NON_BREAKING
    assert not found.rows
    assert found.columns is not None
    assert columns <= found.columns
    assert "and nothing else" in found.why


ROWS = [
    ("SELECT DISTINCT a FROM s.e", "SELECT DISTINCT a, b FROM s.e"),
    ("SELECT a FROM s.e UNION SELECT a FROM s.f",
     "SELECT a, b FROM s.e UNION SELECT a, b FROM s.f"),
    ("SELECT a FROM s.e EXCEPT SELECT a FROM s.f",
     "SELECT a, b FROM s.e EXCEPT SELECT a, b FROM s.f"),
    ("WITH d AS (SELECT DISTINCT a FROM s.e) SELECT COUNT(*) AS n FROM d",
     "WITH d AS (SELECT DISTINCT a, b FROM s.e) SELECT COUNT(*) AS n FROM d"),
    ("WITH d AS (SELECT a FROM s.e) SELECT DISTINCT * FROM d",
     "WITH d AS (SELECT a, b FROM s.e) SELECT DISTINCT * FROM d"),
    ("WITH d AS (SELECT a FROM s.e) SELECT *, COUNT(*) AS n FROM d GROUP BY ALL",
     "WITH d AS (SELECT a, b FROM s.e) SELECT *, COUNT(*) AS n FROM d GROUP BY ALL"),
    ("WITH d AS (SELECT a, b FROM s.e) SELECT *, COUNT(*) AS n FROM d GROUP BY ALL",
     "WITH d AS (SELECT a, b + 1 AS b FROM s.e) SELECT *, COUNT(*) AS n FROM d GROUP BY ALL"),
    ("WITH d AS (SELECT a, b FROM s.e) SELECT * FROM d ORDER BY 2 LIMIT 3",
     "WITH d AS (SELECT a, -b AS b FROM s.e) SELECT * FROM d ORDER BY 2 LIMIT 3"),
    ("WITH d AS (SELECT a, b FROM s.e) SELECT a FROM (SELECT * FROM d ORDER BY 2 LIMIT 3)",
     "WITH d AS (SELECT a, -b AS b FROM s.e) SELECT a FROM (SELECT * FROM d ORDER BY 2 LIMIT 3)"),
    ("WITH d AS (SELECT STRUCT(a) AS g FROM s.e) SELECT g.* FROM d",
     "WITH d AS (SELECT STRUCT(b AS a) AS g FROM s.e) SELECT g.* FROM d"),
    ("SELECT a FROM (SELECT a FROM s.e) NATURAL JOIN s.f",
     "SELECT a FROM (SELECT a, b FROM s.e) NATURAL JOIN s.f"),
    ("SELECT x FROM (SELECT a, x FROM s.e)", "SELECT x FROM (SELECT a, b AS a, x FROM s.e)"),
    ("SELECT x FROM (SELECT a, b AS a, x FROM s.e)", "SELECT x FROM (SELECT a, x FROM s.e)"),
    ("SELECT x FROM (SELECT a, b AS a, x FROM s.e)", "SELECT x FROM (SELECT a, c AS a, x FROM s.e)"),
    ("SELECT a FROM s.e", "SELECT a, EXPLODE(b) AS b FROM s.e"),
    ("SELECT a FROM s.e", "SELECT a, 1 AS c, EXPLODE(b) AS b FROM s.e"),
    ("SELECT a + 1 FROM s.e ORDER BY 1", "SELECT c + 1, a + 1 FROM s.e ORDER BY 1"),
    ("SELECT c + 1, a + 1 FROM s.e ORDER BY 1", "SELECT a + 1 FROM s.e ORDER BY 1"),
    ("SELECT a + 1, b + 1 FROM s.e ORDER BY 1", "SELECT b + 1, a + 1 FROM s.e ORDER BY 1"),
    ("WITH d AS (SELECT a, b FROM s.e) SELECT *, 1 AS m FROM d ORDER BY 2 LIMIT 3",
     "WITH d AS (SELECT a, -b AS b FROM s.e) SELECT *, 2 AS m FROM d ORDER BY 2 LIMIT 3"),
    ("SELECT a FROM s.e SORT BY ALL LIMIT 3", "SELECT -a AS m, a FROM s.e SORT BY ALL LIMIT 3"),
    ("SELECT a, b FROM s.e", "SELECT a, EXPLODE(b) AS b FROM s.e"),
    ("SELECT a, c FROM s.e LIMIT 3",
     "SELECT a, c + 1 AS c, RANK() OVER (ORDER BY b) AS r FROM s.e LIMIT 3"),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY ALL",
     "SELECT a, b, COUNT(*) AS n, SUM(x) AS x FROM s.e GROUP BY ALL"),
    ("WITH d AS (SELECT a, b FROM s.e) SELECT * FROM d CROSS JOIN s.f ORDER BY 2 LIMIT 3",
     "WITH d AS (SELECT a, -b AS b FROM s.e) SELECT * FROM d CROSS JOIN s.f ORDER BY 2 LIMIT 3"),
    ("SELECT a FROM s.e", "SELECT a, JSON_TUPLE(b, 'x') FROM s.e"),
    ("SELECT a FROM s.e", "SELECT a, INLINE_OUTER(b) FROM s.e"),
    ("SELECT 1 AS a FROM s.e", "SELECT 1 AS a, SUM(b) AS s FROM s.e"),
    ("SELECT 1 AS a FROM s.e", "SELECT 1 AS a, my_own(b) AS s FROM s.e"),
    ("SELECT 1 AS a, my_own(b) AS s FROM s.e", "SELECT 1 AS a FROM s.e"),
    ("SELECT b AS s FROM s.e", "SELECT my_own(b) AS s FROM s.e"),
    ("SELECT my_own(b) AS s FROM s.e", "SELECT b AS s FROM s.e"),
    ("SELECT (SELECT MAX(x) FROM s.f) AS a FROM s.e",
     "SELECT (SELECT MAX(x) FROM s.f) AS a, my_own(b) AS s FROM s.e"),
    ("SELECT 1 AS a FROM s.e", "SELECT 1 AS a, SUM(b) FILTER (WHERE c > 1) AS s FROM s.e"),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY a",
     "SELECT a, b, COUNT(*) AS n FROM s.e GROUP BY a, b"),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY ALL",
     "SELECT a, b, COUNT(*) AS n FROM s.e GROUP BY ALL"),
    ("SELECT a, COUNT(*) AS n FROM s.e GROUP BY 1",
     "SELECT b, a, COUNT(*) AS n FROM s.e GROUP BY 1"),
    ("SELECT DATE(x) AS d, COUNT(*) AS n FROM s.e GROUP BY d",
     "SELECT TRUNC(x, 'MM') AS d, COUNT(*) AS n FROM s.e GROUP BY d"),
    ("SELECT TIMESTAMPADD(month, 1, x) AS month, COUNT(*) AS n FROM s.e GROUP BY month",
     "SELECT TIMESTAMPADD(month, 2, x) AS month, COUNT(*) AS n FROM s.e GROUP BY month"),
    ("SELECT a FROM s.e ORDER BY y LIMIT 3", "SELECT a, -y AS y FROM s.e ORDER BY y LIMIT 3"),
    ("SELECT * FROM (SELECT a, x FROM s.e) e JOIN s.f ON e.a = f.k PIVOT (SUM(x) FOR n IN (1))",
     "SELECT * FROM (SELECT a, x, b FROM s.e) e JOIN s.f ON e.a = f.k PIVOT (SUM(x) FOR n IN (1))"),
    ("SELECT * FROM (SELECT a, x FROM s.e), s.f PIVOT (SUM(x) FOR n IN (1))",
     "SELECT * FROM (SELECT a, x, b FROM s.e), s.f PIVOT (SUM(x) FOR n IN (1))"),
    ("SELECT x FROM (SELECT a, x FROM s.e) JOIN s.f USING (a)",
     "SELECT x FROM (SELECT -a AS a, x FROM s.e) JOIN s.f USING (a)"),
    ("WITH d AS (SELECT a AS g FROM s.e) SELECT g.* FROM d",
     "WITH d AS (SELECT b AS g FROM s.e) SELECT g.* FROM d"),
    ("SELECT x, v FROM (SELECT a, x FROM s.e) LATERAL VIEW EXPLODE(a) t AS v",
     "SELECT x, v FROM (SELECT b AS a, x FROM s.e) LATERAL VIEW EXPLODE(a) t AS v"),
    ("SELECT COUNT(*) AS n FROM (SELECT a, x FROM s.e) GROUP BY x",
     "SELECT COUNT(*) AS n FROM (SELECT a, b AS x FROM s.e) GROUP BY x"),
    ("SELECT a, COUNT(*) AS n FROM (SELECT a, x FROM s.e) GROUP BY a HAVING MAX(x) > 1",
     "SELECT a, COUNT(*) AS n FROM (SELECT a, b AS x FROM s.e) GROUP BY a HAVING MAX(x) > 1"),
    ("SELECT *, a AS k FROM s.e ORDER BY 2 LIMIT 3",
     "SELECT *, a AS k FROM s.e ORDER BY k LIMIT 3"),
    ("SELECT a, SUM(x) AS x FROM s.e GROUP BY a HAVING x > 5",
     "SELECT a, SUM(x) * 2 AS x FROM s.e GROUP BY a HAVING x > 5"),
    ("SELECT a, x, RANK() OVER (ORDER BY b) AS n FROM s.e QUALIFY x > 5",
     "SELECT a, x * 2 AS x, RANK() OVER (ORDER BY b) AS n FROM s.e QUALIFY x > 5"),
    ("SELECT a FROM (SELECT a, x FROM s.e) QUALIFY RANK() OVER (ORDER BY x) = 1",
     "SELECT a FROM (SELECT a, b AS x FROM s.e) QUALIFY RANK() OVER (ORDER BY x) = 1"),
    ("SELECT a FROM s.e QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1",
     "SELECT a, RANK() OVER (ORDER BY y) AS r FROM s.e QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1"),
    ("SELECT a FROM (SELECT a, x FROM s.e) QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1",
     "SELECT a FROM (SELECT a, x, RANK() OVER (ORDER BY y) AS r FROM s.e) QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1"),
    ("SELECT a, v FROM (SELECT a, x FROM s.e) g, LATERAL EXPLODE(x) AS t(v)",
     "SELECT a, v FROM (SELECT a, y AS x FROM s.e) g, LATERAL EXPLODE(x) AS t(v)"),
    ("SELECT a, x FROM s.e CLUSTER BY x LIMIT 3", "SELECT a, x FROM s.e CLUSTER BY 2 LIMIT 3"),
    ("SELECT a, x FROM s.e CLUSTER BY 2 LIMIT 3", "SELECT a, -x AS x FROM s.e CLUSTER BY 2 LIMIT 3"),
    ("(SELECT a FROM s.e) LIMIT 3", "(SELECT a FROM s.e) LIMIT 4"),
    ("(SELECT a FROM s.e)", "(SELECT a FROM s.e) LIMIT 4"),
    ("(SELECT a FROM s.e) LIMIT 4", "(SELECT a FROM s.e)"),
    ("SELECT a FROM s.e UNION ALL SELECT a FROM s.f", "SELECT a FROM s.e UNION SELECT a FROM s.f"),
    ("SELECT a FROM s.e UNION ALL SELECT a FROM s.f",
     "SELECT a FROM s.e UNION ALL SELECT a FROM s.f WHERE b > 1"),
    ("SELECT a FROM s.e UNION SELECT a FROM s.f", "SELECT a FROM s.e UNION SELECT -a FROM s.f"),
    ("SELECT a FROM s.e EXCEPT ALL SELECT a FROM s.f",
     "SELECT -a AS a FROM s.e EXCEPT ALL SELECT a FROM s.f"),
    ("SELECT a FROM s.e UNION ALL SELECT a FROM s.f ORDER BY a LIMIT 3",
     "SELECT a FROM s.e UNION ALL SELECT a FROM s.f ORDER BY a DESC LIMIT 3"),
    ("SELECT a, x FROM s.e UNION ALL SELECT a, x FROM s.f ORDER BY x LIMIT 3",
     "SELECT a, x FROM s.e UNION ALL SELECT a, -x FROM s.f ORDER BY x LIMIT 3"),
    ("SELECT a FROM (SELECT a, x FROM s.e) UNION ALL SELECT a FROM s.f LIMIT 3",
     "SELECT a FROM (SELECT a, x, RANK() OVER (ORDER BY y) AS r FROM s.e) UNION ALL SELECT a FROM s.f LIMIT 3"),
    ("SELECT a, b FROM s.e UNION ALL SELECT a AS a, b AS b FROM s.f",
     "SELECT a, b FROM s.e UNION ALL SELECT b AS b, a AS a FROM s.f"),
    ("SELECT a FROM s.e UNION ALL SELECT a AS a FROM s.f",
     "SELECT a, b FROM s.e UNION ALL SELECT c AS z, a AS a FROM s.f"),
    ("SELECT a, b FROM s.e UNION ALL SELECT a, b FROM s.f", "SELECT a FROM s.e UNION ALL SELECT a FROM s.f"),
    ("SELECT a, x FROM s.e UNION ALL SELECT * FROM (SELECT a, x FROM s.f)",
     "SELECT a, x FROM s.e UNION ALL SELECT * FROM (SELECT a, -x AS x FROM s.f)"),
    ("WITH c(a) AS (SELECT x FROM s.e) SELECT a FROM c",
     "WITH c(a) AS (SELECT y AS x FROM s.e) SELECT a FROM c"),
    ("WITH c(a, b) AS (SELECT x, y FROM s.e) SELECT a FROM c",
     "WITH c(b, a) AS (SELECT x, y FROM s.e) SELECT a FROM c"),
    ("WITH c AS (SELECT 1 AS x) SELECT x FROM (WITH d AS (SELECT x FROM c), c AS (SELECT 2 AS x) SELECT d.x FROM d, c)",
     "WITH c AS (SELECT 1 AS x) SELECT x FROM (WITH c AS (SELECT 2 AS x), d AS (SELECT x FROM c) SELECT d.x FROM d, c)"),
    ("WITH d AS (WITH c AS (SELECT 1 AS x) SELECT x FROM c) SELECT x FROM d",
     "WITH c AS (SELECT 2 AS x), d AS (SELECT x FROM c) SELECT x FROM d"),
    ("WITH c AS (SELECT 2 AS x), d AS (SELECT x FROM c) SELECT x FROM d",
     "WITH d AS (WITH c AS (SELECT 1 AS x) SELECT x FROM c) SELECT x FROM d"),
    ("SELECT x FROM (WITH c AS (SELECT x FROM s.e) SELECT x FROM c)",
     "WITH c AS (SELECT y AS x FROM s.e) SELECT x FROM (SELECT x FROM c)"),
    ("SELECT j.x, j.y FROM (SELECT x FROM s.e) j CROSS JOIN (SELECT y FROM s.f) j",
     "SELECT j.x, j.y FROM (SELECT x + 1 AS x FROM s.e) j CROSS JOIN (SELECT y FROM s.f) j"),
    ("SELECT j.a FROM (SELECT a FROM (SELECT a FROM s.e)) j CROSS JOIN (SELECT y FROM s.f) j LIMIT 3",
     "SELECT j.a FROM (SELECT a FROM (SELECT a, RANK() OVER (ORDER BY x) AS r FROM s.e)) j CROSS JOIN (SELECT y FROM s.f) j LIMIT 3"),
    ("SELECT m FROM (SELECT e.a, f.a, e.m FROM s.e JOIN s.f ON e.b = f.b ORDER BY 1 LIMIT 3)",
     "SELECT m FROM (SELECT e.a, f.a, e.m FROM s.e JOIN s.f ON e.b = f.b ORDER BY 2 LIMIT 3)"),
    ("SELECT a, x FROM (SELECT a, CAST(x AS INT) FROM (SELECT a, x FROM s.e))",
     "SELECT a, x FROM (SELECT a, CAST(x AS INT) FROM (SELECT a, x + 1 AS x FROM s.e))"),
    ("SELECT a, x FROM (SELECT a, CAST(x AS STRING) FROM s.e)",
     "SELECT a, x FROM (SELECT a, CAST(x AS INT) FROM s.e)"),
    ("SELECT a, `max(x)` AS m FROM (SELECT a, MAX(x) FROM (SELECT a, x FROM s.e) GROUP BY a)",
     "SELECT a, `max(x)` AS m FROM (SELECT a, MAX(x) FROM (SELECT a, y AS x FROM s.e) GROUP BY a)"),
    ("SELECT `first(x)` AS m FROM (SELECT FIRST(x) FROM s.e)",
     "SELECT `first(x)` AS m FROM (SELECT FIRST(x), COUNT(DISTINCT y) AS n FROM s.e)"),
    ("SELECT a, `l[0].x` AS m FROM (SELECT a, l[0].x FROM (SELECT a, l FROM s.e))",
     "SELECT a, `l[0].x` AS m FROM (SELECT a, l[0].x FROM (SELECT a, r AS l FROM s.e))"),
    ("SELECT a FROM (SELECT a, CAST(x AS STRING) FROM s.e ORDER BY x LIMIT 3)",
     "SELECT a FROM (SELECT a, CAST(x AS INT) FROM s.e ORDER BY x LIMIT 3)"),
    ("SELECT a FROM (SELECT a FROM s.e ORDER BY x LIMIT 3)",
     "SELECT a FROM (SELECT a, CAST(x AS STRING) FROM s.e ORDER BY x LIMIT 3)"),
    ("SELECT a FROM (SELECT a FROM s.e GROUP BY a, x HAVING x > 10)",
     "SELECT a FROM (SELECT a, CAST(x AS STRING) FROM s.e GROUP BY a, x HAVING x > 10)"),
    ("SELECT a FROM s.e GROUP BY a HAVING FIRST(x) > 1",
     "SELECT a, MAX(b) AS m FROM s.e GROUP BY a HAVING FIRST(x) > 1"),
    ("SELECT a FROM (SELECT a, x FROM s.e) ORDER BY x LIMIT 3",
     "SELECT a FROM (SELECT a, -x AS x FROM s.e) ORDER BY x LIMIT 3"),
    ("SELECT a, x FROM s.e ORDER BY x OFFSET 3", "SELECT a, -x AS x FROM s.e ORDER BY x OFFSET 3"),
    ("SELECT a FROM (SELECT a, x FROM s.e ORDER BY ALL) LIMIT 3",
     "SELECT a FROM (SELECT a, -x AS x FROM s.e ORDER BY ALL) LIMIT 3"),
    ("SELECT a, SUM(a) OVER w AS s FROM (SELECT a, x FROM s.e) WINDOW w AS (ORDER BY x)",
     "SELECT a, SUM(a) OVER w AS s FROM (SELECT a, b AS x FROM s.e) WINDOW w AS (ORDER BY x)"),
    ("SELECT a, x AS b FROM s.e DISTRIBUTE BY b LIMIT 3",
     "SELECT a, -x AS b FROM s.e DISTRIBUTE BY b LIMIT 3"),
    ("SELECT a FROM s.e", "SELECT a FROM s.e WHERE b"),
    ("SELECT a FROM s.e", "SELECT a FROM s.e LIMIT 3"),
    ("SELECT a FROM s.e", "SELECT DISTINCT a FROM s.e"),
    ("SELECT a FROM s.e", "SELECT a FROM s.f"),
    ("SELECT a FROM s.e", "SELECT a FROM s.e LATERAL VIEW EXPLODE(l) t AS v"),
    ("SELECT a, n FROM s.e", "SELECT a, n FROM s.e QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1"),
    ("SELECT e.a FROM s.e e", "SELECT e.a FROM s.e e LEFT JOIN s.f f ON e.a = f.a"),
    ("SELECT e.a FROM s.e e LEFT JOIN s.f f ON e.a = f.a",
     "SELECT e.a FROM s.e e JOIN s.f f ON e.a = f.a"),
    ("SELECT a FROM s.e WHERE b IN (1, 2)", "SELECT a FROM s.e WHERE b IN (1, 2, 3)"),
    ("WITH c AS (SELECT b FROM s.f) SELECT a FROM s.e WHERE b IN (SELECT b FROM c)",
     "WITH c AS (SELECT b + 1 AS b FROM s.f) SELECT a FROM s.e WHERE b IN (SELECT b FROM c)"),
    ("WITH c AS (SELECT b FROM s.f) SELECT a FROM s.e WHERE EXISTS (SELECT 1 FROM c WHERE b = x)",
     "WITH c AS (SELECT b, x FROM s.f) SELECT a FROM s.e WHERE EXISTS (SELECT 1 FROM c WHERE b=x)"),
    ("SELECT a FROM (SELECT a FROM s.e ORDER BY a) LIMIT 1",
     "SELECT a FROM (SELECT a FROM s.e ORDER BY b) LIMIT 1"),
    ("SELECT a FROM (SELECT a, b FROM s.e ORDER BY b) LIMIT 1",
     "SELECT a FROM (SELECT a, -b AS b FROM s.e ORDER BY b) LIMIT 1"),
    ("SELECT a FROM (SELECT a, b FROM s.e UNION ALL SELECT a, b FROM s.f SORT BY b) LIMIT 1",
     "SELECT a FROM (SELECT a, -b AS b FROM s.e UNION ALL SELECT a, b FROM s.f SORT BY b) LIMIT 1"),
    ("SELECT a FROM (SELECT a FROM (SELECT a, b FROM s.e) CLUSTER BY b) LIMIT 1",
     "SELECT a FROM (SELECT a FROM (SELECT a, -b AS b FROM s.e) CLUSTER BY b) LIMIT 1"),
    ("SELECT a FROM (SELECT a FROM s.e WHERE a > 1), (SELECT b FROM s.f)",
     "SELECT a FROM (SELECT a FROM s.e WHERE a > 2), (SELECT b FROM s.f)"),
    ("WITH c AS (SELECT a, b FROM s.e) SELECT * FROM c PIVOT (SUM(a) FOR b IN (1))",
     "WITH c AS (SELECT a, b, d FROM s.e) SELECT * FROM c PIVOT (SUM(a) FOR b IN (1))"),
    ("SELECT a + 1, b + 1 FROM s.e ORDER BY 1 LIMIT 3",
     "SELECT a + 1, b + 1 FROM s.e ORDER BY 2 LIMIT 3"),
    ("WITH RECURSIVE c AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM c WHERE a < 9) SELECT a FROM c",
     "WITH RECURSIVE c AS (SELECT 1 AS a UNION ALL SELECT a + 2 FROM c WHERE a < 9) SELECT a FROM c"),
    ("SELECT a FROM (SELECT e.* FROM s.e JOIN s.f ON e.a = f.a)",
     "SELECT a FROM (SELECT f.* FROM s.e JOIN s.f ON e.a = f.a)"),
    ("WITH c AS (SELECT b FROM s.f) SELECT a FROM s.e WHERE EXISTS (SELECT 1 FROM c WHERE g.x = b)",
     "WITH c AS (SELECT b, g FROM s.f) SELECT a FROM s.e WHERE EXISTS (SELECT 1 FROM c WHERE g.x=b)"),
    ("WITH c AS (SELECT b FROM s.f) SELECT a FROM s.e WHERE EXISTS (SELECT 1 FROM c NATURAL JOIN s.f)",
     "WITH c AS (SELECT b, x FROM s.f) SELECT a FROM s.e WHERE EXISTS (SELECT 1 FROM c NATURAL JOIN s.f)"),
    ("WITH c AS (SELECT a, b FROM s.f) SELECT a FROM s.e WHERE a = (SELECT COUNT(*) FROM c PIVOT (SUM(a) FOR b IN (1)))",
     "WITH c AS (SELECT a, b, d FROM s.f) SELECT a FROM s.e WHERE a = (SELECT COUNT(*) FROM c PIVOT (SUM(a) FOR b IN (1)))"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), ROWS)
def test_an_edit_that_may_change_rows_is_breaking_for_every_reader(old: str, new: str):
    found = edited(old, new)

    assert (found.category, found.rows, found.columns) == (Category.BREAKING, True, None)
    assert affected(found, frozenset({"ds"}))


WRONG_ONCE = [
    ("SELECT STRUCT(A) AS a FROM s.e", "SELECT STRUCT(a) AS a FROM s.e"),
    ("SELECT NAMED_STRUCT('A', 1) AS a FROM s.e", "SELECT NAMED_STRUCT('a', 1) AS a FROM s.e"),
    ("SELECT e.x.A AS a FROM s.e e", "SELECT e.x.a AS a FROM s.e e"),
    ("SELECT CAST(x AS STRUCT<A: INT>) AS a FROM s.e",
     "SELECT CAST(x AS STRUCT<a: INT>) AS a FROM s.e"),
    ("WITH c AS (SELECT 1 AS x), d AS (SELECT x FROM c) SELECT x FROM d",
     "WITH c AS (SELECT 1 AS x), d AS (WITH c AS (SELECT 2 AS x) SELECT x FROM c) SELECT x FROM d"),
    ("WITH c AS (SELECT 1 AS x) SELECT x FROM (SELECT x FROM c)",
     "WITH c AS (SELECT 1 AS x) SELECT x FROM (WITH c AS (SELECT 2 AS x) SELECT x FROM c)"),
    ("SELECT a, b, SUM(x) AS s FROM s.e GROUP BY ROLLUP (1, 2)",
     "SELECT b, a, SUM(x) AS s FROM s.e GROUP BY ROLLUP (1, 2)"),
    ("SELECT a, b, SUM(x) AS s FROM s.e GROUP BY CUBE (1, 2)",
     "SELECT a, c, b, SUM(x) AS s FROM s.e GROUP BY CUBE (1, 2)"),
    ("SELECT a, b, SUM(x) AS s FROM s.e GROUP BY GROUPING SETS ((1), (1, 2))",
     "SELECT b, a, SUM(x) AS s FROM s.e GROUP BY GROUPING SETS ((1), (1, 2))"),
    ("SELECT a FROM s.e ORDER BY ALL LIMIT 3", "SELECT -a AS m, a FROM s.e ORDER BY ALL LIMIT 3"),
    ("SELECT a FROM s.e SORT BY 1 LIMIT 1", "SELECT -a AS m, a FROM s.e SORT BY 1 LIMIT 1"),
    ("SELECT x AS a, y AS x FROM s.e ORDER BY 1 LIMIT 3",
     "SELECT x AS a, y AS x FROM s.e ORDER BY x LIMIT 3"),
    ("SELECT a, SUM(x) AS s FROM s.e GROUP BY ALL",
     "SELECT a, SUM(x) AS s, b + SUM(x) AS t FROM s.e GROUP BY ALL"),
    ("SELECT CAST(x AS TIME) AS a FROM s.e", "SELECT CAST(x AS TIMESTAMP) AS a FROM s.e"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS a FROM s.e",
     "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS a FROM s.e"),
    ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS a FROM s.e",
     "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x DESC) AS a FROM s.e"),
    ("SELECT DATE_FORMAT(x, 'yyyy') AS a FROM s.e", "SELECT DATE_FORMAT(x, 'YYYY') AS a FROM s.e"),
    ("SELECT 1e0 + 2 AS a FROM s.e", "SELECT 3 AS a FROM s.e"),
    ("SELECT 'O''Brien' AS a FROM s.e", "SELECT 'OBrien' AS a FROM s.e"),
    ("SELECT x - INTERVAL 1 DAY 2 HOURS AS a FROM s.e",
     "SELECT x - INTERVAL 1 DAY - INTERVAL 2 HOURS AS a FROM s.e"),
    ("SELECT MAX_BY(x, y, 2) AS a FROM s.e", "SELECT MAX_BY(x, y) AS a FROM s.e"),
    ("SELECT LISTAGG(x) AS a FROM s.e", "SELECT LISTAGG(x, ',') AS a FROM s.e"),
    ("SELECT TO_CHAR(x, 'yyyyMM') AS a FROM s.e", "SELECT CAST(x AS STRING) AS a FROM s.e"),
    ("SELECT TO_DATE(x, 'yyyy') AS a FROM s.e", "SELECT TO_DATE(x, 'yyyy-MM') AS a FROM s.e"),
    ("SELECT FLOOR(LOG10(x)) AS a FROM s.e", "SELECT FLOOR(LOG(10, x)) AS a FROM s.e"),
    ("SELECT PARSE_JSON(x) AS a FROM s.e", "SELECT x AS a FROM s.e"),
    ("SELECT a FROM s.e QUALIFY ROW_NUMBER() OVER (ORDER BY a) < 3",
     "SELECT a FROM s.e QUALIFY ROW_NUMBER() OVER (ORDER BY a) < 3 LIMIT 1"),
    ("SELECT a FROM s.e QUALIFY RANK() OVER (ORDER BY a) = 1",
     "SELECT DISTINCT a FROM s.e QUALIFY RANK() OVER (ORDER BY a) = 1"),
    ("SELECT SUM(x) OVER w AS a FROM s.e WINDOW w AS (ORDER BY b)",
     "SELECT SUM(x) OVER w AS a FROM s.e WINDOW w AS (ORDER BY c)"),
    ("SELECT a FROM s.e LIMIT 3", "SELECT a, RANK() OVER (ORDER BY b) AS r FROM s.e LIMIT 3"),
    ("SELECT a, RANK() OVER (ORDER BY b) AS r FROM s.e LIMIT 3",
     "SELECT a, RANK() OVER (ORDER BY c) AS r FROM s.e LIMIT 3"),
    ("SELECT a, FIRST(x) AS f FROM s.e GROUP BY a",
     "SELECT a, FIRST(x) AS f, MAX(b) AS m FROM s.e GROUP BY a"),
    ("SELECT COLLECT_LIST(x) AS f FROM (SELECT x, b FROM s.e SORT BY b)",
     "SELECT COLLECT_LIST(x) AS f FROM (SELECT x, -b AS b FROM s.e SORT BY b)"),
    ("SELECT a FROM s.e LIMIT 3", "SELECT /*+ REPARTITION(3, b) */ a FROM s.e LIMIT 3"),
    ("SELECT e.a FROM s.e JOIN s.f ON e.k = f.k LIMIT 3",
     "SELECT /*+ BROADCAST(e) */ e.a FROM s.e JOIN s.f ON e.k = f.k LIMIT 3"),
    ("SELECT COLLECT_LIST(x) AS f FROM (SELECT x, b FROM s.e)",
     "SELECT COLLECT_LIST(x) AS f FROM (SELECT /*+ REPARTITION(3, b) */ x, b FROM s.e)"),
    ("SELECT TO_JSON(STRUCT(*)) AS a FROM (SELECT x, 5L FROM s.e)",
     "SELECT TO_JSON(STRUCT(*)) AS a FROM (SELECT x, CAST(5 AS BIGINT) FROM s.e)"),
    ("SELECT a FROM s.e WHERE (a = 1 OR b = 1) AND c = 1",
     "SELECT a FROM s.e WHERE a = 1 OR b = 1 AND c = 1"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), WRONG_ONCE)
def test_what_sqlglot_once_hid_is_seen_now(old: str, new: str):
    for text, other in ((old, new), (new, old)):
        found = edited(text, other)
        assert found.category is Category.BREAKING
        assert found.columns is None or found.columns & {"a", "f"}


def test_an_edit_of_sql_that_is_not_analysed_completely_is_breaking_even_a_comment():
    sql = "SELECT 'O''Brien' AS a FROM s.e"
    found = edited(sql, f"-- why\n{sql}")
    assert (found.category, found.rows, found.columns) == (Category.BREAKING, True, None)


def test_a_reader_that_is_not_analysed_completely_is_affected_as_a_whole():
    reader = SqlQuery("SELECT a, 'O''Brien' AS b FROM s.e")
    assert sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({"c"}))}).rows


SOME_COLUMNS = [
    ("SELECT a, b FROM s.e", "SELECT a, b + 1 AS b FROM s.e", {"b"}),
    ("SELECT a, b FROM s.e", "SELECT a FROM s.e", {"b"}),
    ("SELECT a, b FROM s.e", "SELECT a, my_own(b) AS b FROM s.e", {"b"}),
    ("SELECT b, b + 1 AS c FROM s.e", "SELECT b + 1 AS c FROM s.e", {"b"}),
    ("SELECT a + 1, b AS m FROM s.e ORDER BY 1", "SELECT a + 1, b + 1 AS m FROM s.e ORDER BY 1", {"m"}),
    ("SELECT a, b FROM s.e ORDER BY ALL", "SELECT a, b + 1 AS b FROM s.e ORDER BY ALL", {"b"}),
    ("SELECT a, b FROM s.e ORDER BY b", "SELECT a, b + 1 AS b FROM s.e ORDER BY b", {"b"}),
    ("SELECT COALESCE(b, 0) AS b, COUNT(*) AS n FROM s.e GROUP BY b",
     "SELECT COALESCE(b, 1) AS b, COUNT(*) AS n FROM s.e GROUP BY b", {"b"}),
    ("SELECT a, b FROM s.e LIMIT 3", "SELECT a, b + 1 AS b FROM s.e LIMIT 3", {"b"}),
    ("SELECT a, FIRST(x) AS f, a + 1 AS b FROM s.e GROUP BY a",
     "SELECT a, FIRST(x) AS f, a + 2 AS b FROM s.e GROUP BY a", {"b"}),
    ("SELECT *, b + 1 AS m FROM s.e ORDER BY 1", "SELECT *, b + 2 AS m FROM s.e ORDER BY 1", {"m"}),
    ("SELECT a AS x, x + 1 AS y FROM s.e", "SELECT x + 1 AS y FROM s.e", {"x", "y"}),
    ("SELECT a, p.s.x AS b FROM s.e", "SELECT a, q.s.x AS b FROM s.e", {"b"}),
    ("SELECT a, b FROM s.e", "SELECT a, b AS c FROM s.e", {"b", "c"}),
    ("SELECT a, b FROM s.e", "SELECT a, CAST(b AS DECIMAL(9, 2)) AS b FROM s.e", {"b"}),
    ("SELECT a, SUM(b) AS b FROM s.e GROUP BY a", "SELECT a, AVG(b) AS b FROM s.e GROUP BY a",
     {"b"}),
    ("SELECT a + 1 AS b, b * 2 AS c, d FROM s.e", "SELECT a + 2 AS b, b * 2 AS c, d FROM s.e",
     {"b", "c"}),
    ("SELECT COALESCE(b, 0) AS b, b * 2 AS c FROM s.e",
     "SELECT COALESCE(b, 1) AS b, b * 2 AS c FROM s.e", {"b"}),
    ("SELECT a, (SELECT MAX(b) FROM s.f) AS b, b + 1 AS c FROM s.e",
     "SELECT a, (SELECT MAX(b) + 1 FROM s.f) AS b, b + 1 AS c FROM s.e", {"b", "c"}),
    ("WITH c AS (SELECT a, b FROM s.e) SELECT a, b, a + b AS s FROM c",
     "WITH c AS (SELECT a, b * 2 AS b FROM s.e) SELECT a, b, a + b AS s FROM c", {"b", "s"}),
    ("SELECT x.a, y.b FROM (SELECT a FROM s.e) x CROSS JOIN (SELECT b FROM s.f) y",
     "SELECT x.a, y.b FROM (SELECT a FROM s.e) x CROSS JOIN (SELECT b * 2 AS b FROM s.f) y",
     {"b"}),
    ("SELECT a, b FROM s.e UNION ALL SELECT c, d FROM s.f",
     "SELECT a, b FROM s.e UNION ALL SELECT c, d * 2 FROM s.f", {"b"}),
    ("SELECT a, b FROM s.e", "SELECT a, 2 * b AS b, c FROM s.e", {"b", "c"}),
    ("SELECT x FROM s.e UNION ALL SELECT x FROM s.f",
     "SELECT x, b FROM s.e UNION ALL SELECT b, x FROM s.f", {"b", "x"}),
    ("SELECT a, g.x AS b FROM (SELECT a, g FROM s.e) CROSS JOIN (SELECT y FROM s.f) g",
     "SELECT a, g.x AS b FROM (SELECT a, h AS g FROM s.e) CROSS JOIN (SELECT y FROM s.f) g", {"b"}),
    ("SELECT STRUCT(a AS x) AS g, g.x AS b FROM s.e CROSS JOIN s.f g",
     "SELECT STRUCT(c AS x) AS g, g.x AS b FROM s.e CROSS JOIN s.f g", {"g", "b"}),
    ("SELECT a, TRANSFORM(l, x -> x + e.x) AS b FROM s.e", "SELECT a, TRANSFORM(l, x -> x + x) AS b FROM s.e",
     {"b"}),
    ("SELECT a, TRANSFORM(l, B -> b + 1) AS b, b[0] AS c FROM s.e",
     "SELECT a, TRANSFORM(l, B -> b + 2) AS b, b[0] AS c FROM s.e", {"b", "c"}),
    ("SELECT a, g.x AS b FROM (SELECT a, g FROM s.e) CROSS JOIN (SELECT y FROM s.f) g",
     "SELECT a, g.x AS b FROM (SELECT a, g FROM s.e) CROSS JOIN (SELECT y, x FROM s.f) g", {"b"}),
    ("SELECT a, DATEDIFF(day, x, y) AS day, day + 1 AS b FROM s.e",
     "SELECT a, DATEDIFF(day, x, z) AS day, day + 1 AS b FROM s.e", {"b", "day"}),
    ("WITH c AS (SELECT a, x AS session_user FROM s.e) SELECT a, session_user AS b FROM c",
     "WITH c AS (SELECT a, y AS session_user FROM s.e) SELECT a, session_user AS b FROM c", {"b"}),
    ("WITH c AS (SELECT a, b FROM s.e) SELECT a, b FROM c UNION ALL SELECT a, b FROM s.f",
     "WITH c AS (SELECT a, -b AS b FROM s.e) SELECT a, b FROM c UNION ALL SELECT a, b FROM s.f", {"b"}),
    ("WITH c AS (SELECT a, b FROM s.e) SELECT a, b FROM (WITH d AS (SELECT a, b FROM c) SELECT a, b FROM d)",
     "WITH c AS (SELECT a, -b AS b FROM s.e) SELECT a, b FROM (WITH d AS (SELECT a, b FROM c) SELECT a, b FROM d)",
     {"b"}),
    ("(SELECT a, b FROM s.e)", "(SELECT a, -b AS b FROM s.e)", {"b"}),
    ("WITH c AS (SELECT a, b FROM s.e) SELECT a, b FROM (SELECT a, b FROM c UNION ALL SELECT a, b FROM s.f)",
     "WITH c AS (SELECT a, -b AS b FROM s.e) SELECT a, b FROM (SELECT a, b FROM c UNION ALL SELECT a, b FROM s.f)",
     {"b"}),
    ("SELECT FIRST(x) AS b FROM (SELECT x FROM (SELECT x FROM s.e) UNION ALL SELECT x FROM s.f)",
     "SELECT FIRST(x) AS b FROM (SELECT x FROM (SELECT x, MAX(y) OVER (ORDER BY y) FROM s.e) UNION ALL SELECT x FROM s.f)",
     {"b"}),
    ("SELECT FIRST(x) AS b FROM (SELECT x FROM s.f UNION ALL SELECT x FROM (SELECT x FROM s.e))",
     "SELECT FIRST(x) AS b FROM (SELECT x FROM s.f UNION ALL SELECT x FROM (SELECT x, MAX(y) OVER (ORDER BY y) FROM s.e))",
     {"b"}),
    ("SELECT a, x AS b FROM (SELECT a, x FROM s.e) ORDER BY x",
     "SELECT a, x AS b FROM (SELECT a, -x AS x FROM s.e) ORDER BY x", {"b"}),
    ("SELECT a AS x, x + 1 AS b FROM (SELECT a FROM s.e)",
     "SELECT a AS x, x + 1 AS b FROM (SELECT a, c AS x FROM s.e)", {"b"}),
    ("SELECT x + 1 AS b, a FROM s.e", "SELECT c AS x, x + 1 AS b, a FROM s.e", {"b", "x"}),
    ("SELECT a, HASH(*) AS b FROM (SELECT a, x FROM s.e)",
     "SELECT a, HASH(*) AS b FROM (SELECT a, -x AS x FROM s.e)", {"b"}),
    ("SELECT a, x AS b, HASH(*) AS h FROM s.e", "SELECT a, -x AS b, HASH(*) AS h FROM s.e", {"b"}),
    ("WITH c AS (SELECT x FROM s.f), d AS (SELECT x FROM s.g) SELECT a, (SELECT MAX(HASH(*)) FROM c) AS b FROM s.e",
     "WITH c AS (SELECT x, y FROM s.f), d AS (SELECT x FROM s.g) SELECT a, (SELECT MAX(HASH(*)) FROM c) AS b FROM s.e",
     {"b"}),
    ("WITH c AS (SELECT x FROM s.f) SELECT a, (SELECT MAX(x) FROM c) AS b FROM s.e",
     "WITH c AS (SELECT x FROM s.f WHERE x > 1) SELECT a, (SELECT MAX(x) FROM c) AS b FROM s.e", {"b"}),
    ("WITH c AS (SELECT x FROM s.f) SELECT a, (SELECT FIRST(x) FROM c) AS b FROM s.e",
     "WITH c AS (SELECT x, RANK() OVER (ORDER BY y) AS r FROM s.f) SELECT a, (SELECT FIRST(x) FROM c) AS b FROM s.e",
     {"b"}),
    # e.x may be the field x of a column e
    ("SELECT a, UPPER(e.x) AS x, e.x AS b FROM s.e", "SELECT a, UPPER(e.x) AS x, x AS b FROM s.e",
     {"b"}),
    ("SELECT a, UPPER(e.x) AS x, x AS b FROM s.e", "SELECT a, LOWER(e.x) AS x, x AS b FROM s.e",
     {"b", "x"}),
    ("SELECT a, (SELECT MAX(f.x) FROM s.f) AS b FROM s.e",
     "SELECT a, (SELECT MAX(x) FROM s.f) AS b FROM s.e", {"b"}),
    ("WITH c AS (SELECT a, STRUCT(x) AS c FROM s.e) SELECT a, c.x AS b FROM c",
     "WITH c AS (SELECT a, STRUCT(y AS x) AS c FROM s.e) SELECT a, c.x AS b FROM c", {"b"}),
    # which of two rows with the same d comes first follows from the order in which Spark takes them
    ("SELECT a, SUM(x) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM s.e",
     "SELECT a, SUM(x) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, RANK() OVER (ORDER BY b) AS r FROM s.e", {"r", "s"}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "columns"), SOME_COLUMNS)
def test_an_edit_of_some_projections_concerns_their_columns_alone(
    old: str, new: str, columns: set[str]
):
    found = edited(old, new)

    assert (found.category, found.rows, found.columns) == (Category.BREAKING, False, columns)
    assert affected(found, frozenset(columns))
    assert not affected(found, frozenset({"ds", "a"}))


def test_another_value_in_the_key_is_another_row():
    found = edited("SELECT ds, id, a FROM s.e", "SELECT ds, id + 1 AS id, a FROM s.e")
    assert (found.rows, found.columns) == (True, None)


def test_another_value_that_decides_which_of_two_rows_stays_is_another_row():
    latest = a_model(sql=SQL, kind=IncrementalByUniqueKey("ds", latest_by="cost"))
    other = replace(latest, query=SqlQuery(SQL.replace("cost", "cost + 1 AS cost")))

    assert difference(latest, other).rows
    assert not difference(MODEL, replace(MODEL, query=other.query)).rows


@pytest.mark.parametrize("query", ["SELECT a FROM s.e", "SELECT DISTINCT a FROM s.e"])
def test_another_order_of_rows_is_breaking_and_concerns_no_reader(query: str):
    found = edited(query, f"{query} ORDER BY a")
    assert (found.category, found.rows, found.columns) == (Category.BREAKING, False, NOTHING)


def test_a_star_that_is_spelled_out_may_change_every_column():
    found = edited("SELECT * FROM s.e", "SELECT a FROM s.e")
    assert (found.category, found.columns) == (Category.BREAKING, None)


@pytest.mark.parametrize(
    ("query", "why"),
    [("SELECT DISTINCT * {}", "DISTINCT"), ("-- why\nSELECT * {} GROUP BY ALL", "GROUP BY ALL")],
)
def test_a_column_that_a_star_brings_is_breaking_where_it_decides_on_rows(query: str, why: str):
    bounded = f"FROM web.events {BOUND}"
    old = a_model(sql=query.removeprefix("-- why\n").format(bounded))
    plain = a_model(sql=f"SELECT * {bounded}")
    more = [*COLUMNS, Column("page", "string")]

    found = difference(old, a_model(sql=query.format(bounded), columns=more))
    assert (found.category, found.rows) == (Category.BREAKING, True)
    assert why in found.why
    found = difference(plain, replace(plain, columns=more))
    assert (found.category, found.columns) == (Category.NON_BREAKING, {"page"})


def test_a_column_that_is_declared_and_that_no_query_gives_is_breaking():
    page = Column("page", "string")
    found = difference(MODEL, replace(MODEL, columns=[*COLUMNS, page]))

    assert (found.category, found.rows) == (Category.BREAKING, True)
    assert found.why == "nothing that is known gives page"
    function = replace(MODEL, query=FunctionQuery("f", "def f(inputs, interval):\n    return 1\n"))
    found = difference(
        function, a_model(sql=SQL.replace("cost", "cost, page"), columns=[*COLUMNS, page])
    )
    assert (found.category, found.rows) == (Category.BREAKING, True)


def test_an_added_column_is_one_in_whatever_case_it_is_declared():
    page = Column("Page", "string")
    sql = SQL.replace("cost", "cost, page AS Page")
    found = difference(MODEL, a_model(sql=sql, columns=[*COLUMNS, page]))
    assert (found.category, found.columns) == (Category.NON_BREAKING, {"Page"})


def test_quotes_and_the_case_of_tables_are_spelling_but_the_case_of_what_names_an_output_is_not():
    assert edited("SELECT E.a FROM s.e", "SELECT e.`a` FROM S.E").category is Category.METADATA
    assert edited("SELECT A FROM s.e", "SELECT a FROM s.e").columns == {"a"}
    found = edited("SELECT e.m.a AS b FROM s.e", "SELECT e.m.A AS b FROM s.e")
    assert found.columns == {"b"}


def test_the_name_of_the_only_source_is_spelling_where_columns_are_filtered_and_grouped_too():
    found = edited(
        "SELECT e.a, COUNT(*) AS n FROM s.e WHERE e.b > 1 GROUP BY e.a",
        "SELECT a, COUNT(*) AS n FROM s.e WHERE b > 1 GROUP BY a",
    )

    assert found.category is Category.METADATA


def test_two_differences_together_are_of_the_columns_of_both_or_of_any():
    cost, page, any_column = (
        DeclarationDifference(Category.BREAKING, "", rows=False, columns=columns)
        for columns in (frozenset({"cost"}), frozenset({"page"}), None)
    )

    assert both(cost, page).columns == {"cost", "page"}
    assert both(cost, any_column).columns is both(any_column, cost).columns is None


def test_audit_columns_come_without_breaking_and_go_breaking():
    more = replace(MODEL, audit_columns=True)

    assert difference(MODEL, more).category is Category.NON_BREAKING
    assert difference(more, MODEL).category is Category.BREAKING
    assert not affected(difference(more, MODEL), frozenset({"ds", "id", "cost"}))


@pytest.mark.parametrize(
    ("difference", "reads", "sees"),
    [
        (DeclarationDifference(Category.METADATA, "", rows=False, columns=NOTHING), None, False),
        (
            DeclarationDifference(Category.NON_BREAKING, "", rows=False, columns=frozenset("n")),
            None,
            True,
        ),
        (
            DeclarationDifference(Category.NON_BREAKING, "", rows=False, columns=frozenset("n")),
            {"a"},
            False,
        ),
        (DeclarationDifference(Category.BREAKING, "", rows=False, columns=None), {"a"}, True),
        (DeclarationDifference(Category.BREAKING, "", rows=True, columns=NOTHING), {"a"}, True),
        (DeclarationDifference(Category.BREAKING, "", rows=True, columns=NOTHING), NOTHING, True),
    ],
)
def test_a_reader_sees_rows_and_the_columns_that_it_names(
    difference: DeclarationDifference,
    reads: set[str] | None,
    sees: bool,  # noqa: FBT001
):
    named = None if reads is None else frozenset(reads)
    assert affected(difference, named) is sees


MONTHLY = SqlQuery(
    "WITH m AS (SELECT DATE_TRUNC('month', ds) AS d, id, SUM(Cost) AS cost, SUM(x) AS x "
    "FROM web.Events e WHERE e.ds >= :start_ds GROUP BY 1, 2) "
    "SELECT m.d, m.id, m.cost, p.cost AS before FROM m LEFT JOIN m AS p ON m.id = p.id"
)


@pytest.mark.parametrize(
    ("upstream", "expected"),
    [
        (SqlEdit(changed=frozenset({"COST"})), {"cost", "before"}),
        (SqlEdit(changed=frozenset({"x"})), NOTHING),
        (SqlEdit(added=frozenset({"n"})), NOTHING),
        (SqlEdit(changed=frozenset({"id"})), None),
        (SqlEdit(changed=frozenset({"ds"})), None),
        (SqlEdit(rows=True), None),
    ],
)
def test_what_differs_upstream_is_followed_to_the_outputs(
    upstream: SqlEdit, expected: frozenset[str] | None
):
    effect = sql_effect(MONTHLY, {"web.events": upstream})
    assert (None if effect.rows else effect.touched) == expected


READER = a_model(
    "web.reader",
    sql=f"SELECT ds, id, cost * 2 AS Twice, * FROM web.visits {BOUND}",
    upstreams=["web.visits"],
    columns=[*COLUMNS, Column("Twice", "double")],
)


@pytest.mark.parametrize(
    ("reader", "columns", "rows", "expected"),
    [
        (READER, {"cost"}, False, {"cost", "Twice"}),
        (READER, {"page"}, False, {"page"}),
        (READER, {"id"}, False, None),
        (READER, {"cost"}, True, None),
        (READER, None, False, None),
        (replace(READER, query=SqlQuery(f"SELECT ds, cost AS id FROM web.visits {BOUND}")),
         {"cost"}, False, None),
        (replace(READER, query=SqlQuery(f"SELECT ds, id, CAST(cost AS BIGINT) FROM web.visits {BOUND}")),
         {"cost"}, False, None),
        (replace(READER, query=SqlQuery(f"SELECT ds, id FROM web.visits {BOUND} AND cost > 0")),
         {"cost"}, False, None),
        (replace(READER, query=FunctionQuery("f", "def f(a, b):\n    return a\n")),
         {"cost"}, False, None),
    ],
)  # fmt: skip
def test_what_differs_in_an_upstream_differs_in_the_columns_made_of_it_or_where_unknown_in_all(
    reader: Model,
    columns: set[str] | None,
    rows: bool,  # noqa: FBT001
    expected: set[str] | None,
):
    named = None if columns is None else frozenset(columns)
    upstream = DeclarationDifference(Category.BREAKING, "", rows=rows, columns=named)

    found = derived(reader, {"web.visits": upstream})

    assert (found.category, found.rows) == (Category.BREAKING, expected is None)
    assert found.columns == expected
    assert found.why == "reads what changed of web.visits"


@pytest.mark.parametrize("column", ["a", "e.a", "s.e.a", "a.x", "e.a.x", "s.e.a.x"])
def test_a_column_that_differs_is_seen_however_it_is_named(column: str):
    reader = SqlQuery(f"SELECT {column} AS b FROM s.e JOIN s.f ON e.k = f.k")

    def seen(differs: str) -> frozenset[str]:
        return sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({differs}))}).touched

    assert (seen("a"), seen("x")) == ({"b"}, NOTHING)


@pytest.mark.parametrize("column", ["e", "x"])
def test_the_only_sources_name_before_a_column_may_be_a_struct_that_differs(column: str):
    reader = SqlQuery("SELECT e.x AS b FROM s.e")
    assert sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({column}))}).touched == {"b"}


def test_a_hint_that_goes_by_what_differs_takes_rows_in_another_order():
    reader = SqlQuery("SELECT /*+ REPARTITION(3, x) */ a FROM s.e LIMIT 3")
    assert sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({"x"}))}).rows


def test_a_table_that_is_joined_before_the_join_around_it_is_read_too():
    reader = SqlQuery("SELECT g.a FROM s.g JOIN s.e JOIN s.f ON e.a = f.b ON g.a = e.a")
    assert sql_effect(reader, {"s.f": SqlEdit(changed=frozenset({"b"}))}).rows


@pytest.mark.parametrize("upstream", ["s.e", "r.e"])
def test_what_differs_in_either_of_two_tables_of_one_name_is_seen(upstream: str):
    reader = SqlQuery("SELECT x, y FROM s.e JOIN r.e ON k = j")
    assert sql_effect(reader, {upstream: SqlEdit(changed=frozenset({"x"}))}).shows


def test_a_column_that_differs_is_seen_where_an_alias_gives_it_another_name():
    reader = SqlQuery("SELECT q FROM s.e AS e(p, q)")
    assert sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({"b"}))}).rows


@pytest.mark.parametrize(("star", "seen"), [("e.*", set[str]()), ("f.*", {"b"}), ("*", {"b"})])
def test_a_star_gives_what_differs_in_its_own_table(star: str, seen: set[str]):
    reader = SqlQuery(f"SELECT {star} FROM s.e JOIN s.f ON e.k = f.k")
    assert sql_effect(reader, {"s.f": SqlEdit(changed=frozenset({"b"}))}).touched == seen


def test_a_star_decides_on_no_row_where_rows_are_cut_by_another_column():
    reader = SqlQuery("SELECT * FROM s.e ORDER BY a LIMIT 3")
    effect = sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({"b"}))})
    assert (effect.rows, effect.touched) == (False, {"b"})


@pytest.mark.parametrize(("call", "seen"), [("COUNT(*)", set[str]()), ("HASH(*)", {"b"})])
def test_a_star_in_a_call_looks_at_every_column_but_where_rows_are_counted(
    call: str, seen: set[str]
):
    reader = SqlQuery(f"SELECT a, {call} AS b FROM s.e")
    assert sql_effect(reader, {"s.e": SqlEdit(changed=frozenset({"x"}))}).touched == seen


@pytest.mark.parametrize("how", ["changed", "removed", "moved"])
def test_a_column_is_followed_in_whatever_case_it_is_declared(how: str):
    upstream = replace(SqlEdit(), **{how: frozenset({"Cost"})})
    assert sql_effect(SqlQuery("SELECT * FROM s.e"), {"s.e": upstream}).touched == {"cost"}


class Texts:
    """The files of a folder, edited as a story's project is."""

    def __init__(self, folder: Path) -> None:
        self.texts = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}

    def edit(self, file: str, old: str, new: str) -> None:
        assert self.texts[file].count(old) == 1
        self.texts[file] = self.texts[file].replace(old, new)


def test_the_columns_that_a_story_adds_are_added_and_nothing_else():
    before = Texts(Path(marketing.__file__).parent)
    after = Texts(Path(marketing.__file__).parent)
    add_conversion_value(cast("Any", after))

    for file, added in (
        ("campaign_performance.sql", {*NEW_COLUMNS}),
        ("roi_analysis.sql", {"profit"}),
    ):
        edit = sql_change(*(SqlQuery(texts.texts[file]) for texts in (before, after)))
        assert (edit.added, edit.is_breaking) == (added, False)


def test_a_column_that_is_named_as_a_literal_keeps_its_quotes():
    edit = sql_change(
        SqlQuery("SELECT `NULL` AS a FROM s.e"), SqlQuery("SELECT NULL AS a FROM s.e")
    )

    assert edit.changed == {"a"}


def test_the_name_of_an_output_that_moves_may_mean_a_column():
    edit = sql_change(
        SqlQuery("SELECT a AS x, b, c, x + 1 AS y FROM s.e"),
        SqlQuery("SELECT b, c, x + 1 AS y, a AS x FROM s.e"),
    )

    assert (edit.rows, edit.touched) == (False, {"x", "y"})
