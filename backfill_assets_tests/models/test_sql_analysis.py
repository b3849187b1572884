from __future__ import annotations

import ast
from pathlib import Path

import pytest

import backfill_assets_tests
from backfill_assets import pipelines
from backfill_assets.models.sql.sql_analysis import (
    lossless_tree,
    settled_text,
    written,
)

PRODUCT = Path(pipelines.__file__).parent
TESTS = Path(backfill_assets_tests.__file__).parent
PROJECTS = ("stories", "faults", "toy.py", "engine/three_levels.py")


def model_texts() -> dict[str, str]:
    """The SQL of the product's models and of the models that the tests' projects have."""
    texts = {path.name: path.read_text() for path in PRODUCT.rglob("*.sql")}
    for project in (TESTS / place for place in PROJECTS):
        for path in [project] if project.is_file() else sorted(project.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Name(id="SqlQuery"), args=[ast.Constant(value=str(sql))]
                    ):
                        texts[f"{path.name}:{node.lineno}"] = sql
                    case ast.Constant(value=str(sql)) if sql.startswith(("SELECT\n", "WITH ")):
                        texts[f"{path.name}:{node.lineno}"] = sql
                    case _:
                        pass
    return texts


TEXTS = model_texts()


@pytest.mark.parametrize("name", TEXTS)
def test_the_analysis_of_every_model_here_is_lossless(name: str):
    assert lossless_tree(TEXTS[name])


LOST = {
    "a quote that is doubled": "SELECT 'O''Brien' AS x",
    "an interval of two units": "SELECT ts - INTERVAL 1 DAY 2 HOURS AS x FROM t",
    "TIME": "SELECT CAST(a AS TIME) AS x FROM t",
    "VARCHAR": "SELECT CAST(a AS VARCHAR(3)) AS x FROM t",
    "a colon": "SELECT a:b FROM t",
    "an arrow": "SELECT a -> b AS x FROM t",
    "FROM first": "FROM t SELECT a",
    "an escape that Spark keeps": r"SELECT '\u0041' AS x",
    "a raw string": r"SELECT r'\d' AS x",
    "a comment that goes on": "SELECT a -- x \\\n, b\nFROM t",
    "a hint that is none": "SELECT a /*+ x */ FROM t",
    "a sign": "SELECT +a AS x FROM t",
    "TABLE": "TABLE t",
    "a table that a function gets": "SELECT a FROM t, f(TABLE(u))",
    "VALUES": "VALUES (1), (2)",
    "two queries": "SELECT 1; SELECT 2",
    "what can't be read": "SELECT FROM WHERE",
}


@pytest.mark.parametrize("name", LOST)
def test_what_the_analysis_rewrites_or_drops_is_not_lossless(name: str):
    assert lossless_tree(LOST[name]) is None


KEPT = (
    "max_by(x, y, 2)", "listagg(x)", "to_char(x, 'yyyyMM')", "to_date(x, 'yyyy')", "log10(x)",
    "floor(log10(x))", "parse_json(x)", "date_sub(x, 1)", "nvl(x, y)", "substr(x, 1, 2)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "first(x, true)", "struct(x, y)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC)", "named_struct('a', 1)", "mod(x, 2)",
    "date_format(x, 'YYYY')", "x NOT LIKE 'a%'", "CAST(x AS STRUCT<A: INT>)", "to_timestamp(x)",
    "timestampadd(day, 1, x)", "transform(x, y -> y + 1)", "approx_percentile(x, 0.5)",
)  # fmt: skip


@pytest.mark.parametrize("call", KEPT)
def test_a_call_keeps_its_name_and_its_arguments(call: str):
    sql = f"SELECT {call} AS z FROM t"  # noqa: S608 - the SQL is the tests' own
    tree = lossless_tree(sql)

    assert tree is not None
    assert written(tree).replace(" ", "").upper() == sql.replace(" ", "").upper()


SPELLINGS = (
    ("SELECT a <> 1 AS x FROM t", "SELECT a != 1 AS x FROM t"),
    ("SELECT a = 1 AS x FROM t", "SELECT a == 1 AS x FROM t"),
    ("SELECT NOT a > 1 AS x FROM t", "SELECT ! a > 1 AS x FROM t"),
    ("SELECT a <=> b AS x FROM t", "SELECT a IS NOT DISTINCT FROM b AS x FROM t"),
    ("SELECT CAST(a AS INT) AS x FROM t", "SELECT CAST(a AS INTEGER) AS x FROM t"),
    ("SELECT CAST(a AS BIGINT) AS x FROM t", "SELECT CAST(a AS LONG) AS x FROM t"),
    ("SELECT CAST(a AS SMALLINT) AS x FROM t", "SELECT CAST(a AS SHORT) AS x FROM t"),
    ("SELECT CAST(a AS TINYINT) AS x FROM t", "SELECT CAST(a AS BYTE) AS x FROM t"),
    ("SELECT CAST(a AS FLOAT) AS x FROM t", "SELECT CAST(a AS REAL) AS x FROM t"),
    ("SELECT CAST(a AS DECIMAL(9, 2)) AS x FROM t", "SELECT CAST(a AS DEC(9, 2)) AS x FROM t"),
    ("SELECT CAST(a AS DECIMAL(9, 2)) AS x FROM t", "SELECT CAST(a AS NUMERIC(9, 2)) AS x FROM t"),
    ("SELECT a FROM t EXCEPT SELECT 1", "SELECT a FROM t MINUS SELECT 1"),
    ("SELECT a FROM t EXCEPT SELECT 1", "SELECT a FROM t EXCEPT DISTINCT SELECT 1"),
    ("SELECT a FROM t UNION SELECT 1", "SELECT a FROM t UNION DISTINCT SELECT 1"),
    ("SELECT a FROM t INTERSECT SELECT 1", "SELECT a FROM t INTERSECT DISTINCT SELECT 1"),
    ("SELECT a FROM t", "SELECT ALL a FROM t"),
    ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a NULLS FIRST"),
    ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a ASC NULLS FIRST"),
    ("SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t ORDER BY a DESC NULLS LAST"),
    ("SELECT CAST(10 AS BIGINT) AS x", "SELECT 10L AS x"),
    ("SELECT CAST(1 AS SMALLINT) AS x", "SELECT 1S AS x"),
    ("SELECT CAST(1 AS TINYINT) AS x", "SELECT 1Y AS x"),
    ("SELECT CAST(1.5 AS DOUBLE) AS x", "SELECT 1.5D AS x"),
    ("SELECT CAST(1.5 AS FLOAT) AS x", "SELECT 1.5F AS x"),
    ("SELECT CAST('2024-02-29' AS DATE) AS x", "SELECT DATE '2024-02-29' AS x"),
    ("SELECT CAST('2024-02-29 01:02:03' AS TIMESTAMP) AS x",
     "SELECT TIMESTAMP '2024-02-29 01:02:03' AS x"),
    ("SELECT INTERVAL '1' DAY AS x", "SELECT INTERVAL 1 DAY AS x"),
    ("SELECT INTERVAL '3' HOURS AS x", "SELECT INTERVAL '3 hours' AS x"),
    ("SELECT a AS x FROM t AS u", "SELECT a x FROM t u"),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a FROM t INNER JOIN u ON t.a = u.a"),
    ("SELECT t.a FROM t LEFT JOIN u ON t.a = u.a",
     "SELECT t.a FROM t LEFT OUTER JOIN u ON t.a = u.a"),
    ("SELECT a FROM t WHERE a IS NOT NULL", "select a -- why\nfrom t /* x */ where a is not null;"),
    ("SELECT 'x' AS x", 'SELECT "x" AS x'),
    ("SELECT SUM(b) AS x FROM t", "SELECT sum(b) AS x FROM t"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "other"), SPELLINGS)
def test_each_spelling_is_lossless(text: str, other: str):
    assert lossless_tree(text)
    assert lossless_tree(other)


@pytest.mark.parametrize(
    "same",
    [
        "select a, sum(b) as `B` from t group by a",
        "SELECT a,SUM(b) AS `B` -- why\nFROM t /* x */ GROUP   BY a;",
    ],
)
def test_comments_layout_and_the_case_of_keywords_settle(same: str):
    assert settled_text(same) == settled_text("SELECT a, SUM(b) AS `B` FROM t GROUP BY a")


@pytest.mark.parametrize(
    "function",
    ["dateadd", "datediff", "date_add", "date_diff", "timediff", "timestampadd", "timestampdiff"],
)
def test_the_unit_of_an_amount_of_time_is_a_keyword(function: str):
    call = f"SELECT {function}(day, 1, a) AS x FROM t"  # noqa: S608 - the SQL is the tests' own
    assert settled_text(call) == settled_text(call.replace("(day", "(DAY"))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("SELECT struct(A) AS x FROM t", "SELECT struct(a) AS x FROM t"),
        ("SELECT named_struct('A', 1) AS x", "SELECT named_struct('a', 1) AS x"),
        (
            "SELECT CAST(a AS STRUCT<A: INT>) AS x FROM t",
            "SELECT CAST(a AS STRUCT<a: INT>) AS x FROM t",
        ),
        ("SELECT struct(Date) AS x FROM t", "SELECT struct(date) AS x FROM t"),
        ("SELECT a.B FROM t", "SELECT a.b FROM t"),
        ("SELECT 1e0 + 2 AS x", "SELECT 3 AS x"),
        ("SELECT /*+ REPARTITION(2) */ a FROM t", "SELECT a FROM t"),
        ("SELECT 'a b' AS x", "SELECT 'a  b' AS x"),
        ("SELECT 1 .5", "SELECT 1.5"),
        ("SELECT a - -1 AS x FROM t", "SELECT a --1 AS x\nFROM t"),
        ("SELECT 'O''Brien' AS x", "SELECT  'O''Brien' AS x"),
    ],
)
def test_whatever_else_differs_does_not_settle(text: str, other: str):
    assert settled_text(text) != settled_text(other)
