# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlglot
from hypothesis import given, strategies as st
from sqlglot import exp

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.query import (
    SqlQuery,
    parameters_of,
)
from backfill_assets.models.sql.spark_tokens import UnreadableSqlError, tokens_of

VIEWS = {"web.events": "web__events", "web.orders": "web__orders"}
START = datetime(2024, 3, 30, 23, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=1))
INTERVAL = parameters_of(
    START,
    START + timedelta(hours=23),
    START.astimezone(BERLIN),
    datetime(2024, 4, 1, tzinfo=timezone(timedelta(hours=2))),
)


def bound(sql: str) -> str:
    return SqlQuery(sql).bind(INTERVAL, VIEWS)


def test_parameters_become_typed_literals_dates_local_and_instants_in_utc():
    assert bound("SELECT :start_ds, :end_ds, :start_ts, :end_ts") == (
        "SELECT CAST('2024-03-31' AS DATE), CAST('2024-04-01' AS DATE), "
        "CAST('2024-03-30 23:00:00+00:00' AS TIMESTAMP), "
        "CAST('2024-03-31 22:00:00+00:00' AS TIMESTAMP)"
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM web.events", "SELECT id FROM @"),
        ("SELECT e.id FROM web.events e", "SELECT e.id FROM @ e"),
        ("SELECT id FROM WEB.Events", "SELECT id FROM @"),
        ("SELECT id FROM `web` /* ? */ .\n`Events`--", "SELECT id FROM  /* ? */ \n@--"),
        ("SELECT web.events.id FROM web.events", "SELECT events.id FROM @"),
        ("SELECT web.events.* FROM web.events", "SELECT events.* FROM @"),
        ("SELECT e.page.url FROM web.events e", "SELECT e.page.url FROM @ e"),
        ("SELECT a FROM web.events AS e(a, b)", "SELECT a FROM @ AS e(a, b)"),
        ("FROM web.events |> WHERE events.id=1", "FROM @ |> WHERE events.id=1"),
        ("TABLE web.events", "TABLE `web__events`"),
        (
            "SELECT * FROM f(TABLE(web.events), web.events)",
            "SELECT * FROM f(TABLE(`web__events`), web.events)",
        ),
        (
            "SELECT * FROM (a CROSS JOIN web.events) t, web.events",
            "SELECT * FROM (a CROSS JOIN @) t, @",
        ),
        (
            "SELECT * FROM VALUES (1, null), (2, x) t, web.events",
            "SELECT * FROM VALUES (1, null), (2, x) t, @",
        ),
        (
            "SELECT * FROM a LATERAL VIEW explode(m) v AS k, web",
            "SELECT * FROM a LATERAL VIEW explode(m) v AS k, web",
        ),
        (
            "SELECT * FROM a JOIN b ON a.x = b.x, web.events",
            "SELECT * FROM a JOIN b ON a.x = b.x, @",
        ),
        ("SELECT 1 FROM a WHERE EXISTS (FROM web.events)", "SELECT 1 FROM a WHERE EXISTS (FROM @)"),
        (
            "SELECT /*+ BROADCAST(web.events) */ 1 FROM web.events",
            "SELECT /*+ BROADCAST(events) */ 1 FROM @",
        ),
        (
            "SELECT * FROM (SELECT 1) UNION ALL TABLE web.events",
            "SELECT * FROM (SELECT 1) UNION ALL TABLE `web__events`",
        ),
    ],
)
def test_upstreams_are_read_through_views_that_the_query_knows_by_its_own_names(
    sql: str, expected: str
):
    assert bound(sql) == expected.replace("@", "(`web__events` AS `events`)")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'web.events :start_ds', \"O\"\"Brien web.events\", r'\\', 'O''Brien' -- FROM web.events",
        "SELECT EXTRACT(DAY FROM web.events), web.events FROM a WHERE a IS NOT DISTINCT FROM web.events",
        "SELECT TRIM(BOTH 'x' FROM web.events), arr[0].web.events.id, f(x -> x.web.events.id) FROM a",
        "SELECT v:start_ds, `v`:start_ds, arr[0]:end_ds, f(x):end_ts, v:web.events.id, v::INT FROM a",
        "SELECT CAST(NULL AS STRUCT<start_ds: INT, from: INT, by:DATE>), 1e0 + 2, 10L, .5BD FROM a",
        "SELECT /* /* web.events */ FROM web.events */ $$ FROM web.events $$, $a$ :start_ds $a$ FROM a",
        "SELECT id FROM spark_catalog.web.events",
    ],
)
def test_what_only_looks_like_a_parameter_or_an_upstream_stays_as_written(sql: str):
    assert bound(sql) == sql


@pytest.mark.parametrize(
    ("sql", "token"),
    [
        ("SELECT web.events.id FROM web.events JOIN a AS web", "web.events.id"),
        (
            "SELECT 1 FROM web.events WHERE EXISTS (SELECT 1 FROM a AS events WHERE web.events.id = id)",
            "web.events.id",
        ),
        ("WITH events AS (SELECT 1) SELECT web.events.id FROM web.events, events", "web.events.id"),
        ("SELECT sum(a) OVER (ORDER BY b ROWS:start_ds)", "ROWS:start_ds"),
    ],
)
def test_a_name_that_may_be_two_things_is_refused_with_its_token(sql: str, token: str):
    with pytest.raises(DeclarationError, match=r"line \d+, column \d+: '") as caught:
        bound(sql)

    assert str(caught.value).startswith("line 1, column ")
    assert f": '{token}' " in str(caught.value)


@pytest.mark.parametrize("word", ["RANGE", "EXTEND", "AGGREGATE", "SET", "IF", "USING", "AS"])
def test_a_word_that_may_be_a_column_is_refused_before_a_parameter(word: str):
    with pytest.raises(DeclarationError, match=f"'{word}:start_ds' may be a column with a path"):
        SqlQuery(f"SELECT 1 FROM web.events {word} :start_ds")


BEFORE_A_PARAMETER = (
    "ALL", "AND", "BETWEEN", "BY", "DISTINCT", "DIV", "ELSE", "ESCAPE", "FOR", "FROM", "HAVING",
    "ILIKE", "IN", "LIKE", "LIMIT", "OFFSET", "ON", "OR", "PLACING", "QUALIFY", "REGEXP", "RLIKE",
    "THEN", "TO", "WHEN", "WHERE", ", NOT", ", CASE", ", INTERVAL", ", VALUES",
)  # fmt: skip


@pytest.mark.parametrize("word", BEFORE_A_PARAMETER)
def test_what_follows_a_word_that_a_value_follows_is_a_parameter(word: str):
    assert SqlQuery(f"SELECT a {word} :start_ds").parameters() == {"start_ds"}


def test_a_parameter_does_not_grow_together_with_the_word_before_it():
    assert bound("SELECT 1 WHERE a AND:start_ds=b") == (
        "SELECT 1 WHERE a AND CAST('2024-03-31' AS DATE)=b"
    )


PIECES = [
    "'it''s'",
    '"a"',
    "r'\\'",
    "`b``c`",
    "1e0",
    "2a",
    "x",
    ":",
    "::",
    "/* c */",
    "--d\n",
    " ",
    "(",
    ")",
    ",",
    ".",
    "web",
    "events",
    "$$q$$",
    "/*+",
    "*/",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_tokens_and_what_lies_between_them_are_the_text(text: str):
    try:
        tokens = tokens_of(text)
    except UnreadableSqlError:
        return
    end, again = 0, ""
    for token in tokens:
        gap = text[end : token.start]
        assert gap.strip() == "" or gap.strip().startswith(("--", "/*"))
        assert token.text == text[token.start : token.end] != ""
        again += gap + token.text
        end = token.end
    assert again + text[end:] == text


def test_what_hangs_on_a_table_stays_when_a_view_takes_its_place():
    sampled = bound("SELECT id FROM web.events TABLESAMPLE (10 PERCENT) REPEATABLE (1)")
    turned = bound("SELECT * FROM web.events PIVOT (SUM(cost) FOR channel IN ('a', 'b'))")
    joined = bound("SELECT 1 FROM web.events e, web.orders o LEFT JOIN web.events f USING (id)")

    assert "TABLESAMPLE (10 PERCENT)" in sampled
    assert "PIVOT (SUM(cost)" in turned
    assert joined.count("`web__") == 3


def test_a_cte_hides_a_table_of_its_name_but_not_the_upstream_of_two_parts():
    query = SqlQuery(
        "WITH events AS (SELECT id FROM web.events), Orders AS (SELECT id FROM web.orders) "
        "SELECT * FROM events JOIN orders USING (id)"
    )

    assert query.tables() == {"web.events", "web.orders"}
    assert query.bind({}, VIEWS).endswith("SELECT * FROM events JOIN orders USING (id)")


def test_table_functions_are_no_tables():
    assert SqlQuery("SELECT id FROM RANGE(3) JOIN web.events USING (id)").tables() == {"web.events"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(a) OVER `w` FROM web.events, web.orders WINDOW `w` AS (ORDER BY a), `v` AS (ORDER BY b)",
        "SELECT sum(a) OVER w FROM web.events, web.orders o WINDOW w AS (ORDER BY a), v AS (ORDER BY b)",
        "SELECT 1 FROM web.events AS window LEFT JOIN web.orders ON window.id = orders.id",
        "SELECT 1 FROM web.events window, web.orders",
        "SELECT 1 FROM web.events limit CROSS JOIN web.orders LIMIT 2",
        "SELECT 1 FROM web.events group JOIN web.orders USING (id) GROUP BY `a`, `b`",
        "SELECT 1 FROM web.events, web.orders ORDER BY `a`, `b`",
        "SELECT 1 FROM web.events, web.orders WHERE 1 = left(a, 1) ORDER BY a, b",
        "SELECT 1 FROM web.events, web.orders SORT BY a, b",
        "SELECT 1 FROM web.events, web.orders CLUSTER BY a, b",
        "SELECT 1 FROM web.events, web.orders DISTRIBUTE BY a, b",
    ],
)
def test_a_word_begins_a_clause_or_is_an_alias_as_what_follows_says(sql: str):
    query = SqlQuery(sql)

    assert query.tables() == {"web.events", "web.orders"}
    assert query.bind({}, VIEWS).count("(`web__") == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM web.events WHERE EXISTS (SELECT 1 FROM web.orders WHERE web.orders.id = web.events.id)",
        "SELECT (SELECT max(id) FROM web.orders o WHERE o.id = web.events.id) FROM web.events",
        "SELECT 1 FROM web.events, LATERAL (SELECT * FROM web.orders WHERE web.events.id = 1)",
        "SELECT 1 FROM web.events JOIN ((SELECT web.events.id FROM a) UNION SELECT 1 FROM web.orders)",
    ],
)
def test_a_column_of_an_outer_querys_table_is_refused_where_an_inner_column_has_its_name(sql: str):
    with pytest.raises(DeclarationError, match="give that table an alias") as caught:
        SqlQuery(sql).require_placeable(frozenset({"id", "events"}))

    assert ": 'web.events.id' " in str(caught.value)
    SqlQuery(sql).require_placeable(frozenset({"id"}))
    assert "web.events.id" not in SqlQuery(sql).bind(
        {}, VIEWS
    )  # as it is stored, it runs as it did


HOSTILE = [
    "'; DROP TABLE x; --",
    ":start_ds",
    "web.events",
    "a`b",
    "/* not a comment",
    "it's",
    'say "hi"',
    "back\\slash",
    "new\nline",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str):
    literal = exp.Literal.string(text).sql(dialect="spark")

    tree = sqlglot.parse_one(bound(f"SELECT {literal} AS t FROM web.events"), dialect="spark")

    assert [node.name for node in tree.find_all(exp.Literal)] == [text]
    assert [table.name for table in tree.find_all(exp.Table)] == ["web__events"]


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=12))
def test_hostile_names_stay_names(name: str):
    identifier = exp.to_identifier(name, quoted=True).sql(dialect="spark")

    tree = sqlglot.parse_one(bound(f"SELECT {identifier} FROM web.events"), dialect="spark")

    assert [column.name for column in tree.find_all(exp.Column)] == [name]


@given(st.sampled_from(HOSTILE))
def test_hostile_comments_stay_comments(text: str):
    comment = text.replace("*/", "").replace("\n", " ").replace("/*", "")
    text = bound(f"SELECT id -- {comment}\nFROM web.events /* {comment} */")
    assert text == f"SELECT id -- {comment}\nFROM (`web__events` AS `events`) /* {comment} */"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("", "nothing"),
        ("SELECT 1; DROP TABLE x", "second statement"),
        ("SELECT 1; SELECT 2", "second statement"),
        ("DELETE FROM web.events", "found DELETE"),
        ("INSERT INTO web.events SELECT 1", "found INSERT"),
        ("WITH a AS (SELECT 1) INSERT INTO b FROM a", "found INSERT"),
        ("FROM a INSERT INTO b SELECT 1", "found INSERT"),
        ("BEGIN SELECT 1; END", "second statement"),
        ("WITH a AS (SELECT 1)", "no query after it"),
        ("SELECT (1", ""),
    ],
)
def test_anything_but_one_select_is_refused_with_its_first_line(sql: str, found: str):
    with pytest.raises(DeclarationError, match="is not one Spark SQL SELECT") as caught:
        SqlQuery(sql)

    assert found in str(caught.value)
    assert (sql or "(empty)") in str(caught.value)


@pytest.mark.parametrize("sql", ["SELECT 'open", "SELECT /* a", "SELECT `a", "SELECT {a}"])
def test_what_is_no_token_of_spark_is_refused_with_its_place(sql: str):
    with pytest.raises(UnreadableSqlError, match="line 1, column 8"):
        SqlQuery(sql)


@pytest.mark.parametrize(
    "sql", ["SELECT 1;", "SELECT 1; -- the end", "WITH a AS (SELECT 1) FROM a"]
)
def test_a_last_semicolon_or_comment_is_no_second_statement(sql: str):
    assert SqlQuery(sql).tables() <= {"a"}


def test_an_unknown_parameter_is_named_with_the_known_ones():
    with pytest.raises(DeclarationError, match=r":until; known are :start_ds, :end_ds"):
        SqlQuery("SELECT id FROM web.events WHERE ds < :until")


def test_columns_of_two_upstreams_of_one_subject_may_be_qualified_in_full():
    query = SqlQuery(
        "select shop.orders.id, shop.customers.name from shop.orders "
        "join shop.customers on shop.orders.customer = shop.customers.id"
    )

    bound = query.bind({}, {"shop.orders": "o", "shop.customers": "c"})

    assert bound == (
        "select orders.id, customers.name from (`o` AS `orders`) "
        "join (`c` AS `customers`) on orders.customer = customers.id"
    )


def test_tables_of_one_name_in_two_subjects_are_refused_where_a_column_names_one_in_full():
    query = SqlQuery("select a.orders.id from a.orders join b.orders using (id)")

    with pytest.raises(DeclarationError, match=r"line \d+, column \d+: 'a\.orders\.id'"):
        query.bind({}, {"a.orders": "o", "b.orders": "p"})
