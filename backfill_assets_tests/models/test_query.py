# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlglot
from hypothesis import given, strategies as st
from sqlglot import exp

from backfill_assets.models.query import (
    SqlQuery,
    UnknownParameterError,
    UnparsableSqlError,
    parameters_of,
)

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
        ("SELECT id FROM web.events", "SELECT id FROM `web__events` AS `events`"),
        ("SELECT e.id FROM web.events e", "SELECT e.id FROM `web__events` AS e"),
        ("SELECT id FROM WEB.Events", "SELECT id FROM `web__events` AS `Events`"),
        ("SELECT web.events.id FROM web.events", "SELECT events.id FROM `web__events` AS `events`"),
        ("SELECT e.page.url FROM web.events e", "SELECT e.page.url FROM `web__events` AS e"),
        ("SELECT a FROM web.events AS e(a, b)", "SELECT a FROM `web__events` AS e(a, b)"),
    ],
)
def test_upstreams_are_read_through_views_that_the_query_knows_by_its_own_names(
    sql: str, expected: str
):
    assert bound(sql) == expected


def test_what_hangs_on_a_table_stays_when_a_view_takes_its_place():
    sampled = bound("SELECT id FROM web.events TABLESAMPLE (10 PERCENT) REPEATABLE (1)")
    turned = bound("SELECT * FROM web.events PIVOT (SUM(cost) FOR channel IN ('a', 'b'))")
    joined = bound("SELECT 1 FROM web.events e, web.orders o LEFT JOIN web.events f USING (id)")

    assert "TABLESAMPLE (10 PERCENT)" in sampled
    assert "PIVOT(SUM(cost)" in turned
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

    assert [one.name for one in tree.find_all(exp.Literal)] == [text]
    assert [one.name for one in tree.find_all(exp.Table)] == ["web__events"]


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=12))
def test_hostile_names_stay_names(name: str):
    identifier = exp.to_identifier(name, quoted=True).sql(dialect="spark")

    tree = sqlglot.parse_one(bound(f"SELECT {identifier} FROM web.events"), dialect="spark")

    assert [one.name for one in tree.find_all(exp.Column)] == [name]


@given(st.sampled_from(HOSTILE))
def test_hostile_comments_are_left_out(text: str):
    comment = text.replace("*/", "").replace("\n", " ").replace("/*", "")
    text = bound(f"SELECT id -- {comment}\nFROM web.events /* {comment} */")
    assert text == "SELECT id FROM `web__events` AS `events`"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("", "nothing"),
        ("SELECT 1; DROP TABLE x", "found Select, Drop"),
        ("SELECT 1; SELECT 2", "found Select, Select"),
        ("DELETE FROM web.events", "found Delete"),
        ("INSERT INTO web.events SELECT 1", "found Insert"),
        ("SELECT FROM WHERE", ""),
        ("SELECT 'open", ""),
        ("SELECT (1", ""),
    ],
)
def test_anything_but_one_select_is_refused_with_its_first_line(sql: str, found: str):
    with pytest.raises(UnparsableSqlError) as caught:
        SqlQuery(sql)

    assert found in str(caught.value)
    assert (sql or "(empty)") in str(caught.value)


@pytest.mark.parametrize(
    "sql", ["SELECT 1;", "SELECT 1; -- the end", "WITH a AS (SELECT 1) FROM a"]
)
def test_a_last_semicolon_or_comment_is_no_second_statement(sql: str):
    assert SqlQuery(sql).normalised()


def test_an_unknown_parameter_is_named_with_the_known_ones():
    with pytest.raises(UnknownParameterError, match=r":until; known are :start_ds, :end_ds"):
        SqlQuery("SELECT id FROM web.events WHERE ds < :until")


@pytest.mark.parametrize(
    "same",
    [
        "select id,cost from web.events where ds>=:start_ds and ds<:end_ds",
        "SELECT id, cost -- why\nFROM web.events\nWHERE ds >= :start_ds /* x */ AND ds < :end_ds;",
        "SELECT id, cost FROM web.events WHERE 1 = 1 AND ds >= :start_ds AND TRUE AND ds < :end_ds",
        "SELECT id, cost FROM web.events WHERE (((ds >= :start_ds))) AND (ds < :end_ds)",
    ],
)
def test_formatting_comments_and_tautologies_normalise_away(same: str):
    first = SqlQuery("SELECT id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds")
    assert SqlQuery(same).normalised() == first.normalised()


@pytest.mark.parametrize(
    "other",
    [
        "SELECT id, cost FROM web.events WHERE ds >= :start_ds AND ds <= :end_ds",
        "SELECT id, cost + 0.5 AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
        "SELECT DISTINCT id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
        "SELECT cost, id FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
        "SELECT id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds LIMIT 5",
        "SELECT id, cost FROM web.events WHERE ds >= :start_ds OR ds < :end_ds",
    ],
)
def test_another_meaning_normalises_to_another_text(other: str):
    first = SqlQuery("SELECT id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds")
    assert SqlQuery(other).normalised() != first.normalised()
