from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.intervals import Daily, Whole
from backfill_assets.models.audit import not_null
from backfill_assets.models.column import Column
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.kind import Full
from backfill_assets.models.python.function_query import (
    FunctionQuery,
    ModuleQuery,
    StoredFile,
)
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream, own_cells
from backfill_assets.planning.change.model_diff import model_diff
from backfill_assets_tests.builders import COLUMNS, a_model
from backfill_assets_tests.models.test_python_audit import audit

if TYPE_CHECKING:
    from backfill_assets.models.model import Model

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


def test_key_ranges_show_as_their_author_wrote_them():
    whole = replace(MODEL, kind=Full(), cadence=Whole(), query=SqlQuery("SELECT * FROM web.events"))
    ranged = replace(whole, key_ranges=KeyRanges("id", [7, 9]))
    assert model_diff(whole, ranged) == "+ key ranges: KeyRanges(column=id, starts=7, 9)"


def test_every_attribute_shows_as_its_author_could_have_written_it():
    cost = Column(
        "cost",
        "double",
        nullable=False,
        unique=True,
        tolerance=0.5,
        shown=False,
        checks=(("some", "cost > 0"), ("few", "cost < 9")),
        warns=("few",),
    )
    edited = replace(
        MODEL,
        query=SqlQuery(SQL.replace("cost FROM", "'O''Brien' AS cost FROM")),  # shown as written
        columns=[*COLUMNS[:2], cost],
        upstreams=["web.events", Upstream("web.more", lookback=2)],
        cadence=Daily(
            start="2024-01-01",
            end="2024-12-31",
            tz="Europe/Berlin",
            cron="0 5 * * *",
            cron_tz="UTC",
        ),
        deletes="none",
        audits=[audit(), not_null("id")],
        late_window=2,
        batch_concurrency=4,
        batch_timeout=90,
        audit_columns=True,
        volatile=True,
        forward_only=True,
        spark={"spark.sql.shuffle.partitions": 8, "spark.sql.files.maxPartitionBytes": 9},
        description="Visits.",
    )
    after = [
        "@@ query @@",
        "+ SELECT ds, id, 'O''Brien' AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
        "@@ columns @@",
        "+ cost double, not null, unique, tolerance 0.5, never shown, cost > 0, cost < 9 (warns)",
        "@@ upstreams @@",
        "+ web.more, lookback=2",
        "+ cadence: day, Europe/Berlin from 2024-01-01 to before 2025-01-01 due at 0 5 * * * (UTC)",
        "+ deletes: none",
        "@@ audits @@",
        "+ below: the blocking function below",
        "+ # checks",
        "+ LIMIT = 0",
        "+ def below(rows):",
        "+     return rows.where(f'cost < {LIMIT}')",
        "+ not_null_id: RowRule(predicate=`id` IS NOT NULL)",
        "+ late window: 2",
        "+ batches at once: 4",
        "+ batch timeout: 90 s",
        "+ audit columns: yes",
        "+ volatile: yes",
        "+ forward only: yes",
        "@@ spark @@",
        "+ spark.sql.files.maxPartitionBytes = 9",
        "+ spark.sql.shuffle.partitions = 8",
        "+ description: Visits.",
    ]

    there = model_diff(MODEL, edited).splitlines()
    back = model_diff(edited, MODEL).splitlines()

    assert [line for line in there if line[0] in "+@"] == after
    assert [line.replace("-", "+", 1) for line in back if line[0] in "-@"] == after
    assert "- deletes: absent" in there
    assert "@@ spark @@" in model_diff(edited, replace(edited, spark={})).splitlines()


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


def reading_file(content: bytes) -> Model:
    file = StoredFile("shop/rates.csv", base64.b64encode(content).decode())
    module = StoredModule("shop", "def f(inputs, interval):\n    return inputs\n")
    return replace(MODEL, query=ModuleQuery("f", "shop", (module,), (file,)))


def header_of(content: bytes) -> str:
    return (
        f"# shop/rates.csv: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}"
    )


def test_a_file_that_a_function_reads_shows_where_it_was_edited():
    before, after = b"currency,rate\nEUR,1.0\nUSD,0.9\n", b"currency,rate\nEUR,1.0\nUSD,0.95\n"

    assert model_diff(reading_file(before), reading_file(after)).splitlines() == [
        "@@ query @@",
        "  def f(inputs, interval):",
        "      return inputs",
        f"- {header_of(before)}",
        f"+ {header_of(after)}",
        "  currency,rate",
        "  EUR,1.0",
        "- USD,0.9",
        "+ USD,0.95",
    ]


@pytest.mark.parametrize(
    "content", [b"\xff", b"a\n" * 1_001, b"\n"], ids=["no text", "long", "nothing to see"]
)
def test_a_file_of_which_a_person_sees_nothing_shows_by_its_size_and_checksum(content: bytes):
    assert model_diff(reading_file(b""), reading_file(content)).splitlines()[-2:] == [
        f"- {header_of(b'')}",
        f"+ {header_of(content)}",
    ]


def test_no_edit_is_no_text():
    assert model_diff(MODEL, MODEL) == ""
    assert model_diff(None, None) == ""
