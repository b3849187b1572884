from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Daily
from backfill_assets.models.audit import not_null
from backfill_assets.models.column import Column
from backfill_assets.models.fingerprint import Fingerprint, changed_models, fingerprints
from backfill_assets.models.graph import stored_graph
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source

SQL = "SELECT ds, id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
FIRST = a_model("web.first", sql=SQL, upstreams=["web.events"])
SECOND = a_model("web.second", upstreams=["web.first", "web.events"])
LAST = a_model("web.last", upstreams=["web.second"])
BEFORE = fingerprints(a_graph(FIRST, SECOND, LAST))


def after(**edit: Any) -> dict[str, Fingerprint]:  # noqa: ANN401
    return fingerprints(stored_graph([replace(FIRST, **edit), SECOND, LAST], [a_source()]))


def data_hashes(found: dict[str, Fingerprint]) -> dict[str, str]:
    return {name: fingerprint.data for name, fingerprint in found.items()}


@pytest.mark.parametrize(
    "edit",
    [
        {"query": SqlQuery(SQL.lower().replace(":START", ":start"))},
        {"query": SqlQuery(f"-- why\n{SQL}".replace(" AND", "\n  AND"))},
    ],
)
def test_formatting_and_comments_change_nothing_at_all(edit: dict[str, Any]):
    assert after(**edit) == BEFORE


@pytest.mark.parametrize(
    "edit",
    [
        {"owner": "team:other"},
        {"grain": "other words"},
        {"description": "other words"},
        {"tags": {"domain": "web"}},
        {"audits": [not_null("id")]},
        {"batch_size": 7},
        {"batch_concurrency": 2},
        {"batch_timeout": 60.0},
        {"late_window": 3},
        {"cadence": Daily(start="2023-01-01")},
        {"columns": [*COLUMNS[:-1], replace(COLUMNS[-1], description="in dollars")]},
        {"columns": [*COLUMNS[:-1], replace(COLUMNS[-1], nullable=False)]},
        {"upstreams": [Upstream("web.events", reopens=Reopens.ALL)]},
    ],
)
def test_words_audits_and_pace_change_the_snapshot_but_no_data(edit: dict[str, Any]):
    found = after(**edit)

    assert data_hashes(found) == data_hashes(BEFORE)
    assert found["web.first"].metadata != BEFORE["web.first"].metadata
    assert found["web.first"].id != BEFORE["web.first"].id
    assert found["web.second"] == BEFORE["web.second"]


@pytest.mark.parametrize(
    "edit",
    [
        {"query": SqlQuery(SQL.replace("cost FROM", "cost * 2 AS cost FROM"))},
        {"query": FunctionQuery("f", "def f(inputs, interval):\n    return 1\n")},
        {"kind": IncrementalByUniqueKey("ds")},
        {"cadence": Daily(start="2024-01-01", tz="Europe/Berlin")},
        {"unique_key": ["id"]},
        {"columns": [*COLUMNS[:-1], Column("cost", "double")]},
        {"upstreams": [Upstream("web.events", lookback=1)]},
        {"deletes": "none"},
        {"audit_columns": True},
    ],
)
def test_logic_changes_the_data_of_the_model_and_of_all_that_read_it(edit: dict[str, Any]):
    found = after(**edit)

    assert found["web.first"].logic != BEFORE["web.first"].logic
    assert all(found[name].data != BEFORE[name].data for name in BEFORE)
    assert found["web.second"].logic == BEFORE["web.second"].logic


def test_logic_that_changes_downstream_leaves_upstream_alone():
    edited = replace(LAST, unique_key=["id"])
    found = fingerprints(a_graph(FIRST, SECOND, edited))

    assert {name for name in found if found[name] != BEFORE[name]} == {"web.last"}


@given(st.permutations([FIRST, SECOND, LAST]), st.booleans())
def test_the_order_of_models_and_of_upstreams_does_not_matter(models: list[Model], turned: bool):  # noqa: FBT001
    if turned:
        models = [replace(model, upstreams=tuple(reversed(model.reads))) for model in models]
    assert data_hashes(fingerprints(a_graph(*models))) == data_hashes(BEFORE)


def test_a_source_is_known_by_its_name_alone():
    moved = a_source(path="elsewhere", owner="team:other")
    assert fingerprints(a_graph(FIRST, SECOND, LAST, sources=[moved])) == BEFORE


def test_only_what_computes_otherwise_has_changed_whatever_the_stored_ids_say():
    logic = replace(SECOND, unique_key=["id"])
    words = replace(FIRST, owner="team:other", query=SqlQuery(f"-- why\n{SQL.lower()}"))
    before = a_graph(FIRST, SECOND, LAST)

    assert changed_models(before, a_graph(words, SECOND, LAST)) == frozenset()
    assert changed_models(before, a_graph(words, logic, LAST)) == {"web.second", "web.last"}


def test_a_bundle_that_an_older_python_wrote_is_the_same_function():
    model = replace(FIRST, query=FunctionQuery("f", "def f(a, b):\n    return (a, (b))\n"))
    same = replace(FIRST, query=FunctionQuery("f", "def f(a,b): return a,b\n"))
    other = replace(FIRST, query=FunctionQuery("f", "def f(a,b): return b,a\n"))

    assert changed_models(a_graph(model), a_graph(same)) == frozenset()
    assert changed_models(a_graph(model), a_graph(other)) == {"web.first"}


def test_a_source_that_becomes_a_model_changes_its_readers_and_a_new_model_is_no_change():
    reader = a_model("web.reader", upstreams=["web.first"])
    before = a_graph(reader, sources=[a_source(), a_source("web.first")])

    assert changed_models(before, a_graph(FIRST, reader)) == {"web.reader"}
