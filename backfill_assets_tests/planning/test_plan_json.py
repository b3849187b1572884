"""The JSON form of a plan: written, described, read back, and refused when it can't be trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan import Estimate, Plan
from backfill_assets.planning.plan.plan_batches import PlannedBatches
from backfill_assets.planning.plan.plan_json import (
    PlanFormatError,
    content_hash,
    plan_document,
    plan_json,
    read_plan,
)
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import Category, PlanRequest, Restatement
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import FIRST, a_graph, a_model, a_run, a_view, day
from backfill_assets_tests.planning.plan_schema import plan_schema

NOW = FIRST + timedelta(days=10)
SCHEMA = Path(__file__).parents[2] / "docs" / "plan.schema.json"
EARLIER = Path(__file__).with_name("earlier_plan.json")


@pytest.fixture
def plan() -> Plan:
    """A plan with an edit, a restatement, gaps and a reader."""
    old = a_graph(a_model("web.a"), a_model("web.b", upstreams=["web.a"]), a_model("web.c"))
    sql = "SELECT ds, id, cost * 2 AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    new = a_graph(
        *(replace(snapshot) for snapshot in old.models.values() if snapshot.name != "web.a"),
        a_model("web.a", sql=sql),
    )
    view = a_view({name: [a_run(day(1, 8), 1)] for name in old.order})
    request = PlanRequest(
        environment="prod",
        asked_by="ann",
        select=("*",),
        restate=(Restatement("web.c", "2024-01-02", "2024-01-03"),),
        categories=(("web.a", Category.BREAKING),),
    )
    return build_plan(request, new, PlanState(view=view, running=snapshots_of(old)), NOW)


def test_a_plan_is_read_back_as_it_was(plan: Plan):
    assert read_plan(plan_json(plan)) == plan


def test_a_plan_that_an_earlier_release_wrote_is_read_and_keeps_its_hash():
    text = EARLIER.read_text(encoding="utf-8")

    earlier = read_plan(text)

    assert "batch_size" not in text  # nor the other attributes that came later
    assert earlier.plan_id == "p90731aaa0"
    assert content_hash(earlier) == json.loads(text)["content_hash"]
    again = json.loads(plan_json(earlier))
    assert _without_what_came_later(again) == json.loads(text)


def _without_what_came_later(document: dict[str, Any]) -> dict[str, Any]:
    document.pop("contract", None)
    for estimated in (document, *document["models"]):
        if estimated.get("estimate"):
            estimated["estimate"].pop("currency")
    for part in (document["request"], *document["models"]):
        for name in (
            "late",
            "lift_cutoffs",
            "kept_rows",
            "kept_before",
            "batch_size",
            "canaries",
            "expect",
            "dual_run_days",
            "pause_schedules",
        ):
            part.pop(name, None)
    return document


def test_a_written_plan_has_its_batches_as_the_plan_keeps_them(plan: Plan):
    assert isinstance(plan.models[0].batches, PlannedBatches)

    written = plan_document(plan)["models"][0]["batches"]

    assert [batch["cells"] for batch in written] == [
        batch.cells for batch in plan.models[0].batches
    ]
    assert isinstance(plan.models[0].batches, PlannedBatches)
    assert isinstance(read_plan(plan_json(plan)).models[0].batches, tuple)


def test_its_id_follows_from_its_content_and_not_from_the_estimate(plan: Plan):
    estimated = replace(plan, estimate=Estimate((1.0, 2.0), (0.1, 0.2), 10, "41 recorded batches"))

    assert plan.plan_id == f"p{content_hash(plan)[:9]}"
    assert content_hash(estimated) == content_hash(plan)
    assert content_hash(replace(plan, seen=99)) != content_hash(plan)
    assert read_plan(plan_json(estimated)) == estimated


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("models", 0, "work"), []),
        (("models", 0, "work", 0, "because"), "nothing"),
        (("models", 0, "batches"), []),
        (("models", 0, "batches", 0, "certain"), False),
        (("models", 0, "batches", 0, "cells"), 99),
        (("models", 2, "batches", 0, "waits_for"), []),
        (("models", 2, "batches", 0, "waits_for"), [["web.b", 0], ["web.x", 7]]),
        (("models", 0, "loaded"), "other code"),
        (("request", "asked_by"), "bob"),
        (("seen",), 99),
        (("protected",), False),
    ],
    ids=str,
)
def test_a_plan_that_was_edited_by_hand_is_refused(
    plan: Plan, where: tuple[Any, ...], value: object
):
    document: Any = plan_document(plan)
    *way, last = where
    inner = document
    for step in way:
        inner = inner[step]
    assert inner[last] != value
    inner[last] = value

    with pytest.raises(PlanFormatError, match="edited"):
        read_plan(json.dumps(document))


@pytest.mark.parametrize(
    ("word", "value"),
    [("cells", 10**30), ("waits_for", [["web.b", 0], ["web.b", 7]])],
    ids=["no such number of cells", "waits with holes"],
)
def test_a_plan_whose_batches_can_t_be_is_refused(plan: Plan, word: str, value: object):
    document: Any = plan_document(plan)
    document["models"][2]["batches"][0][word] = value

    with pytest.raises(PlanFormatError, match="can't be read"):
        read_plan(json.dumps(document))


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("seen",), True, "'seen' can't be read: it should be a valid integer, found true"),
        (("seen",), "3", "'seen' can't be read: it should be a valid integer, found \"3\""),
        (("protected",), 1, "'protected' can't be read: it should be a valid boolean, found 1"),
        (("environment",), None, "'environment' can't be read: it should be a valid string, found"),
        (
            ("until",),
            1704067200,
            "'until' can't be read: it should be a valid datetime, found 1704",
        ),
        (("until",), "2024-01-01T00:00:00", "'until' can't be read: it should have timezone info"),
        (("models", 1), [], "'models.1' can't be read: it should be an object, found []"),
        (("models", 0, "moon"), 1, "'models.0.moon' can't be read, since no such value is known"),
        (
            ("models", 0, "build"),
            "there",
            "it should be 'new version', 'in place', 'pointer only' or",
        ),
        (("models", 0, "kept"), None, "'models.0.kept' can't be read: it should be a valid array"),
        (
            ("models", 0, "kept"),
            [["2024-01-01T00:00:00Z"]],
            "'models.0.kept.0.1' can't be read, since",
        ),
        (("request", "select"), "*", "'request.select' can't be read: it should be a valid array"),
        (
            ("models", 0, "work", 0, "cells"),
            [["2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z"]],
            "'models.0.work.0.cells.0' can't be read: an interval is half open and never empty",
        ),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused_by_its_place_and_by_what_was_expected(
    plan: Plan, where: tuple[Any, ...], value: object, said: str
):
    document: Any = plan_document(plan)
    *way, last = where
    inner = document
    for step in way:
        inner = inner[step]
    inner[last] = value

    with pytest.raises(PlanFormatError) as refused:
        read_plan(json.dumps(document))

    assert said in str(refused.value)
    assert "pydantic" not in str(refused.value)


def test_a_plan_that_lacks_a_value_is_refused(plan: Plan):
    document = plan_document(plan)
    del document["models"][0]["version"]

    with pytest.raises(
        PlanFormatError, match=r"'models\.0\.version' can't be read, since it is missing"
    ):
        read_plan(json.dumps(document))


def test_a_plan_with_a_word_that_is_not_known_is_refused(plan: Plan):
    with pytest.raises(PlanFormatError, match="moon"):
        read_plan(json.dumps({**plan_document(plan), "moon": 1}))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no plan", "not JSON"),
        ("[]", "does not say"),
        ('{"format": "dbt"}', "does not say"),
        ('{"format": "backfill_assets.plan", "format_version": 99}', "format_version is 99"),
        ('{"format": "backfill_assets.plan", "format_version": 1}', "can't be read"),
    ],
)
def test_what_is_not_a_plan_of_ours_is_refused(text: str, found: str):
    with pytest.raises(PlanFormatError, match=found):
        read_plan(text)


def test_the_committed_schema_is_that_of_the_values():
    again = "python -m backfill_assets_tests.planning.plan_schema > docs/plan.schema.json"
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == plan_schema(), again


def test_a_plan_matches_the_schema(plan: Plan):
    document = json.loads(plan_json(plan))

    assert list(mismatches(document, plan_schema(), plan_schema()["$defs"])) == []


def test_the_check_against_the_schema_notices_a_wrong_value(plan: Plan):
    document = json.loads(plan_json(plan))
    document["models"][0]["build"] = "somewhere"
    document["seen"] = "soon"
    document["more"] = 1

    found = list(mismatches(document, plan_schema(), plan_schema()["$defs"]))

    assert len(found) == 3


TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}


def mismatches(  # noqa: PLR0911 - one line per word of the schema
    value: object, schema: dict[str, Any], definitions: dict[str, Any]
) -> list[str]:
    """The part of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return [] if value in allowed else [f"{value!r} is none of {allowed}"]
    if "anyOf" in schema:
        tried = [mismatches(value, option, definitions) for option in schema["anyOf"]]
        return [] if [] in tried else tried[0]
    if schema["type"] == "object":
        return _in_object(value, schema, definitions)
    if schema["type"] == "array":
        if not isinstance(value, list):
            return [f"{value!r} is no array"]
        each = schema.get("prefixItems") or [schema["items"]] * len(value)
        return [
            m
            for item, of in zip(value, each, strict=True)
            for m in mismatches(item, of, definitions)
        ]
    right = isinstance(value, TYPES[schema["type"]])
    return [] if right else [f"{value!r} is no {schema['type']}"]


def _in_object(value: object, schema: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    if not isinstance(value, dict):
        return [f"{value!r} is no object"]
    found = [f"lacks {name}" for name in schema["required"] if name not in value]
    found += [f"has {name}" for name in value if name not in schema["properties"]]
    for name in value.keys() & schema["properties"].keys():
        found += mismatches(value[name], schema["properties"][name], definitions)
    return found
