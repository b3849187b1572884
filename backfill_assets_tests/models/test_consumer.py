from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.consumer import (
    CONSUMED,
    CheckQuery,
    Consumer,
    ConsumerKind,
    Evaluation,
    OnChange,
    Reading,
)
from backfill_assets.models.dbt_exposures import dbt_exposures
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets_tests.builders import a_model, a_source

VISITS = "web.visits"


def a_consumer(*reads: Reading, **declared: Any) -> Consumer:  # noqa: ANN401
    given: dict[str, Any] = {
        "name": "traffic report",
        "kind": "dashboard",
        "owner": "team:web",
        "reads": reads or [Reading(VISITS, columns=["ds"], days_back=30)],
    }
    return Consumer(**{**given, **declared})


def graph_of(*consumers: Consumer) -> Graph:
    return build_graph([a_model()], [a_source()], consumers)


def test_a_graph_carries_its_consumers_by_name():
    found = a_consumer()

    assert graph_of(found).consumers == {"traffic report": found}
    assert found.kind is ConsumerKind.DASHBOARD
    assert build_graph([a_model()], [a_source()]).consumers == {}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"owner": ""}, "'traffic report': found owner ''; expected 'team:name' or"),
        ({"kind": "report"}, "found kind 'report'; expected one of dashboard, notebook"),
        ({"name": " "}, "found no name"),
        ({"reads": []}, "found nothing that it reads"),
        ({"reads": [Reading(VISITS), Reading(VISITS)]}, "'web.visits' more than once"),
        ({"evaluations": [Evaluation("hits", ())]}, "'hits' without a command"),
        ({"evaluations": [Evaluation("hits", ("x",), within=-1)]}, "within -1, 10 minutes"),
        ({"evaluations": [Evaluation("a", ("x",)), Evaluation("a", ("y",))]}, "another one's"),
        ({"reads": [Reading(VISITS, days_back=0)]}, "days_back=0 of 'web.visits'; expected at"),
    ],
    ids=str,
)
def test_a_consumer_that_lacks_something_does_not_load(wrong: dict[str, Any], words: str):
    with pytest.raises(DeclarationError, match=words):
        a_consumer(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"channels": "finance"}, "the single value 'finance' as channels; expected a list of"),
        ({"reads": [VISITS]}, f"'{VISITS}' as one of reads; expected Reading"),
        ({"checks": ["SELECT 1"]}, "as one of checks; expected CheckQuery"),
    ],
)
def test_a_consumer_lists_values_of_the_types_that_it_needs(wrong: dict[str, Any], words: str):
    with pytest.raises(DeclarationError, match=words):
        a_consumer(**wrong)


def test_what_is_given_one_by_one_is_kept_whole():
    given: Any = (reading for reading in [Reading(VISITS)])
    assert a_consumer(reads=given).reads == (Reading(VISITS),)


def test_columns_of_a_reading_and_a_command_are_lists():
    with pytest.raises(DeclarationError, match="the single value 'ds' as columns"):
        Reading(VISITS, columns="ds")
    with pytest.raises(DeclarationError, match=r"the single value 'score\.py' as command"):
        Evaluation("score", "score.py")


def test_a_consumer_reads_models_and_columns_that_there_are():
    with pytest.raises(DeclarationError, match=r"named by 'traffic report'\); did you mean 'web.v"):
        graph_of(a_consumer(Reading("web.visit")))
    with pytest.raises(DeclarationError, match=r"reads 'price' of 'web.visits'.* ds, id,"):
        graph_of(a_consumer(Reading(VISITS, columns=["ds", "price"])))
    with pytest.raises(DeclarationError, match="'traffic report' is declared twice"):
        graph_of(a_consumer(), a_consumer())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reads": [Reading(VISITS, days_back=10**6)]}, "1000000 as days_back of 'web.visits'"),
        ({"on_change": "ack", "notice_days": 10**9}, "1000000000 as notice_days; expected at most"),
    ],
    ids=str,
)
def test_a_consumer_counts_days_that_a_calendar_has(wrong: dict[str, Any], words: str):
    with pytest.raises(DeclarationError, match=words):
        graph_of(a_consumer(**wrong))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"on_change": "tell"}, "found on_change='tell'; expected one of none, notify, ack"),
        ({"on_change": "ack", "notice_days": -1}, "found notice_days=-1; expected 0 or more"),
        ({"notice_days": 2}, "on_change='none'; expected on_change='notify' or 'ack'"),
        ({"on_change": "notify"}, "without channels; expected the name of at least one"),
        ({"checks": [CheckQuery("a", "SELECT 1 FROM web.visit")]}, "check 'a' reads 'web.visit'"),
        (
            {"checks": [CheckQuery("a", "SELECT 1")]},
            "check 'a' reads no model; expected one of web",
        ),
        (
            {"checks": [CheckQuery("a", "SELECT 1 FROM web.visits WHERE ds < :end_ds")]},
            "that check 'a' has parameters",
        ),
        ({"checks": [CheckQuery("a", "SELECT 1 FROM web.visits")] * 2}, "2 checks named 'a'"),
        ({"reviewed": "1.2.2026"}, "found reviewed='1.2.2026'; expected a date such as"),
    ],
    ids=str,
)
def test_a_consumer_that_asks_for_what_can_not_be_does_not_load(wrong: dict[str, Any], words: str):
    with pytest.raises(DeclarationError, match=words):
        a_consumer(**wrong)


def test_what_a_later_release_lets_a_consumer_say_leaves_stored_ones_as_they_were():
    plain = a_consumer()
    asking = a_consumer(on_change="ack", notice_days=2, channels=["board"], reviewed="2026-01-31")

    assert {"on_change", "channels", "reviewed"}.isdisjoint(json.loads(dumps(plain))["v"])
    assert [loads(dumps(each), CONSUMED) for each in (plain, asking)] == [plain, asking]


EXPOSED = {
    "nodes": {
        "model.shop.visits": {"name": "visits", "alias": None, "schema": "web"},
        "model.shop.old": {"name": "old", "schema": "web"},
    },
    "exposures": {
        "exposure.shop.traffic": {
            "name": "traffic",
            "label": "Traffic report",
            "type": "dashboard",
            "owner": {"name": "Web Team", "email": None},
            "depends_on": {"nodes": ["model.shop.visits", "source.shop.raw.clicks"]},
            "description": "for Mondays",
        },
        "exposure.shop.forecast": {
            "name": "forecast",
            "type": "ml",
            "owner": {"email": ["ana@shop.example"]},
            "depends_on": {"nodes": ["model.shop.old"]},
        },
        "exposure.shop.raw": {
            "name": "raw",
            "type": "analysis",
            "owner": {"name": "x"},
            "depends_on": {"nodes": ["source.shop.raw.clicks"]},
        },
    },
}


def test_the_exposures_of_a_dbt_project_are_consumers(tmp_path: Path):
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(EXPOSED), encoding="utf-8")

    found = dbt_exposures(manifest, {"old": VISITS}, on_change="ack")

    assert [(each.name, str(each.kind), each.owner) for each in found] == [
        ("Traffic report", "dashboard", "team:web-team"),
        ("forecast", "model", "ana@shop.example"),
    ]
    assert {each.reads for each in found} == {(Reading(VISITS),)}
    assert {each.on_change for each in found} == {OnChange.ACK}
    manifest.write_text("{}", encoding="utf-8")
    with pytest.raises(DeclarationError, match=r"KeyError: 'nodes'; expected the manifest.json"):
        dbt_exposures(manifest)
