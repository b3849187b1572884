# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

import re

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.sql_volatility import check_stable
from backfill_assets_tests.builders import a_model


def sql(expression: str, table: str = "web.events") -> str:
    return (
        f"SELECT ds, id, {expression} AS cost FROM {table} "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )  # fmt: skip


VOLATILE_SQL = [
    ("rand()", "rand"),
    ("RAND(42)", "rand"),
    ("uuid()", "uuid"),
    ("current_timestamp()", "current_timestamp"),
    ("current_timestamp", "current_timestamp"),
    ("now()", "now"),
    ("curdate()", "curdate"),
    ("unix_timestamp()", "unix_timestamp"),
    ("TIMESTAMP 'now'", "now"),
    ("DATE 'today'", "today"),
    ("monotonically_increasing_id()", "monotonically_increasing_id"),
    ("SHUFFLE(ids)", "shuffle"),
    ("COALESCE(cost, ROUND(randn(), 2))", "randn"),
    ("localtimestamp", "localtimestamp"),
    ("current_time()", "current_time"),
    ("`current_date`", "current_date"),
    ("_metadata.file_modification_time", "_metadata"),
    ("e._metadata.file_name", "_metadata"),
    ("reflect('java.util.UUID', 'randomUUID')", "reflect"),
    ("java_method('java.lang.System', 'nanoTime')", "java_method"),
    ("system.builtin.rand()", "rand"),
    ("input_file_name()", "input_file_name"),
    ("version()", "version"),
    ("current_database()", "current_database"),
    ("user", "user"),
    ("TIMESTAMP_NTZ ' Tomorrow'", "tomorrow"),
    ("CAST('today' AS DATE)", "today"),
    ("TRY_CAST('now' AS TIMESTAMP)", "now"),
    ("'yesterday'::DATE", "yesterday"),
    ("DATE('today')", "today"),
    ("TO_TIMESTAMP('now')", "now"),
    ("DATE_ADD('today', 1)", "today"),
    ("DATEDIFF(ds, 'now')", "now"),
    ("date_trunc('month', 'now')", "now"),
    ("EXTRACT(YEAR FROM 'today')", "today"),
    ("ds < 'today'", "today"),
    ("'yesterday' >= ds", "yesterday"),
    ("ds BETWEEN 'yesterday' AND ds", "yesterday"),
    ("ds BETWEEN '2024-01-01' AND 'today'", "today"),
]


@pytest.mark.parametrize(("expression", "function"), VOLATILE_SQL)
def test_a_volatile_function_of_sql_is_refused_by_name(expression: str, function: str):
    with pytest.raises(
        DeclarationError,
        match=rf"uses {re.escape(function)} in line \d+ of its query, .* volatile=True",
    ):
        check_stable(a_model(sql=sql(expression)))


@pytest.mark.parametrize("method", ["", "SYSTEM ", "bernoulli "])
def test_a_sample_is_volatile(method: str):
    with pytest.raises(DeclarationError, match="uses tablesample"):
        check_stable(a_model(sql=sql("1", f"web.events TABLESAMPLE {method}(10 PERCENT)")))


@pytest.mark.parametrize(
    "expression",
    [
        "'rand()'",
        "now",
        "e.current_time",
        "cost /* uuid() */",
        "$$ rand() $$",
        "e.user",
        "user.id",
        "tablesample",
        "DATE 'nowhere'",
        "CONCAT('today', 'now')",
        "'today' AS date, 1",
        "CASE WHEN cost > 1 THEN 'today' ELSE 'tomorrow' END",
        "campaign = 'today'",
        "`uuid`",
        "unix_timestamp(ds)",
        "CAST('2024-01-01' AS DATE)",
        "hash(id)",
    ],
)
def test_text_columns_and_stable_functions_are_let_through(expression: str):
    check_stable(a_model(sql=sql(expression)))


def test_a_word_for_the_user_is_a_column_where_an_upstream_has_one():
    check_stable(a_model(sql=sql("user")), frozenset({"user"}))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT user AS user FROM web.events",
        "SELECT UPPER(user) AS user FROM web.events",
        "SELECT id AS user, user AS b FROM web.events",  # no lateral alias goes before it
        "SELECT id AS user FROM web.events WHERE user = 'a'",
        "SELECT id AS user FROM web.events UNION ALL SELECT user FROM web.events",
        "SELECT user FROM web.events AS user",
        "SELECT id, (SELECT MAX(user) FROM web.events) AS m, id AS user FROM web.events",
    ],
)
def test_a_word_for_the_user_is_volatile_beside_an_alias_that_it_cannot_name(query: str):
    with pytest.raises(DeclarationError, match="uses user"):
        check_stable(a_model(sql=query))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT user FROM (SELECT id AS user FROM web.events)",
        "SELECT UPPER(user) FROM (SELECT id AS user FROM web.events)",
        "WITH c AS (SELECT id AS user FROM web.events) SELECT user AS user FROM c",
        "WITH c AS (SELECT id AS user FROM web.events), d AS (SELECT user FROM c) SELECT ds FROM d",
    ],
)
def test_a_word_for_the_user_is_a_column_where_an_inner_query_gives_one(query: str):
    check_stable(a_model(sql=query))


def test_a_script_is_volatile():
    script = "SELECT TRANSFORM(ds, id, cost) USING 'cat' AS (ds, id, cost) FROM web.events"
    with pytest.raises(DeclarationError, match="uses transform"):
        check_stable(a_model(sql=script))


def test_a_model_may_declare_itself_volatile():
    check_stable(a_model(sql=sql("rand()"), volatile=True))
