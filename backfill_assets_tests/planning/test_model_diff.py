from __future__ import annotations

from dataclasses import replace

from backfill_assets.intervals import Daily
from backfill_assets.models.audit import not_null
from backfill_assets.models.column import Column
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream, own_cells
from backfill_assets.planning.change.model_diff import model_diff
from backfill_assets_tests.builders import COLUMNS, a_model

SQL = "SELECT ds, id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
MODEL = a_model(sql=SQL)


def test_an_edit_of_the_query_shows_with_a_little_around_it():
    sql = SQL.replace("cost FROM", "cost, cost * 2 AS twice FROM")
    columns = [*COLUMNS, Column("twice", "decimal(18,2)", description="Both ways.")]

    assert model_diff(MODEL, replace(MODEL, query=SqlQuery(sql), columns=columns)) == (
        "@@ query @@\n"
        "    id,\n"
        "    cost,\n"
        "+   cost * 2 AS twice\n"
        "  FROM web.events\n"
        "  WHERE\n"
        "@@ columns @@\n"
        "  id bigint\n"
        "  cost decimal(18,2)\n"
        "+ twice decimal(18,2) -- Both ways."
    )


def test_spaces_case_of_keywords_and_comments_do_not_show():
    other = f"-- why\n{SQL.replace('SELECT', 'select').replace(',', ' ,')} -- where"
    assert model_diff(MODEL, replace(MODEL, query=SqlQuery(other))) == ""


def test_words_that_change_show_as_one_line_each():
    edited = replace(
        MODEL,
        owner="team:other",
        tags={"domain": "web", "tier": "1"},
        batch_size=30,
        cadence=Daily(start="2023-01-01", cron="0 5 * * *"),
        upstreams=[Upstream("web.events", lookback=own_cells(2))],
        audits=[not_null("id", warn=True)],
    )

    assert model_diff(MODEL, edited).splitlines() == [
        "- upstreams: web.events",
        "+ upstreams: web.events, lookback=own_cells(2)",
        "- cadence: day, UTC from 2024-01-01",
        "+ cadence: day, UTC from 2023-01-01 due at 0 5 * * *",
        "+ audits: not_null_id: RowRule(predicate=`id` IS NOT NULL, severity=warning)",
        "+ batch size: 30",
        "- owner: team:web",
        "+ owner: team:other",
        "+ tags: domain=web, tier=1",
    ]


def test_a_new_model_is_all_plus_and_a_removed_one_all_minus():
    come = [line for line in model_diff(None, MODEL).splitlines() if not line.startswith("@@")]
    gone = [line for line in model_diff(MODEL, None).splitlines() if not line.startswith("@@")]

    assert {line[:2] for line in come} == {"+ "}
    assert [line[2:] for line in gone] == [line[2:] for line in come]
    assert "+   cost" in come
    assert "+ unique key: ds, id" in come


def test_a_function_shows_as_its_source():
    before = replace(MODEL, query=FunctionQuery("f", "def f(a, b):\n    x = 1\n    return x\n"))
    after = replace(MODEL, query=FunctionQuery("f", "def f(a, b):\n    x = 2\n    return x\n"))

    assert model_diff(before, after).splitlines() == [
        "@@ query @@",
        "  def f(a, b):",
        "-     x = 1",
        "+     x = 2",
        "      return x",
    ]


def test_no_edit_is_no_text():
    assert model_diff(MODEL, MODEL) == ""
    assert model_diff(None, None) == ""
