"""A model that declares `forward_only`: its changes count from now on, unless the request says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import IntervalSet
from backfill_assets.models.codec import dumps, restored
from backfill_assets.models.column import Column
from backfill_assets.models.fingerprint import fingerprints
from backfill_assets.planning.plan.plan import Build, ModelPlan
from backfill_assets.planning.plan.request import Category
from backfill_assets.snapshots.snapshot import STORED, stored_model
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model
from backfill_assets_tests.planning.test_build_plan import TWICE, a_plan, a_state

WIDER = TWICE.replace("cost * 2 AS cost", "cost, cost * 2 AS twice")


def planned(before: dict[str, Any], after: dict[str, Any], **asked: Any) -> ModelPlan:  # noqa: ANN401
    """What a plan does with web.a, of which one declaration runs and another is loaded."""
    running, loaded = a_graph(a_model("web.a", **before)), a_graph(a_model("web.a", **after))
    found = a_plan(loaded, a_state(running), **asked).model("web.a")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("edit", "category"),
    [
        ({"sql": TWICE}, "breaking"),
        (
            {"sql": WIDER, "columns": (*COLUMNS, Column("twice", "decimal(29,2)"))},
            "non-breaking",
        ),
    ],
    ids=["breaking", "non-breaking"],
)
def test_a_change_of_a_model_that_declares_it_computes_no_history(
    edit: dict[str, Any], category: str
):
    told = {"forward_only": True}

    found = planned(told, {**told, **edit})

    assert (found.category, found.build) == (Category.FORWARD_ONLY, Build.IN_PLACE)
    assert found.cells == IntervalSet()
    assert found.version == found.old_version
    assert found.decided_by == "the model's declaration"
    because = f"it declares forward_only; the planner found: {category} ("
    assert found.category_reason.startswith(because)


def test_a_persons_category_counts_more_than_the_declaration():
    told = {"forward_only": True}

    found = planned(told, {**told, "sql": TWICE}, categories=(("web.a", Category.BREAKING),))

    assert (found.category, found.build) == (Category.BREAKING, Build.NEW_VERSION)
    assert found.decided_by == "ann"


@pytest.mark.parametrize(
    ("now", "category"), [(True, Category.FORWARD_ONLY), (False, Category.BREAKING)]
)
def test_the_loaded_declaration_counts_where_the_edit_switches_it_too(
    now: bool,  # noqa: FBT001
    category: Category,
):
    found = planned({"forward_only": not now}, {"forward_only": now, "sql": TWICE})

    assert found.category is category


@pytest.mark.parametrize("now", [True, False])
def test_switching_it_alone_is_metadata_and_builds_nothing(now: bool):  # noqa: FBT001
    found = planned({"forward_only": not now}, {"forward_only": now})

    assert (found.category, found.build) == (Category.METADATA, Build.POINTER)
    assert found.category_reason == "only forward-only"


def test_a_change_that_no_kept_table_can_take_is_refused_with_the_way_out():
    told = {"forward_only": True}

    with pytest.raises(RequestError, match=r"--category web\.a=breaking"):
        planned(told, {**told, "unique_key": ["id"]})


def test_it_is_no_part_of_what_names_the_table_and_what_was_stored_without_it_is_read():
    plain, forward = a_model("web.a"), a_model("web.a", forward_only=True)
    fingerprint, other = (fingerprints(a_graph(model))["web.a"] for model in (plain, forward))

    assert fingerprint.data == other.data
    assert fingerprint.metadata != other.metadata
    assert "forward_only" not in dumps(plain)  # so hashes of older releases stay
    for model in (plain, forward):
        assert stored_model(dumps(model)) == model
        assert restored(dumps(model), STORED) == model
