"""Who says what becomes of rows that only history has."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, Monthly
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.planning.change.kept_rows import kept_rows, lacking_values
from backfill_assets.planning.change.model_change import ModelChange
from backfill_assets.planning.plan.plan import Change
from backfill_assets.planning.plan.request import Category, KeptRows
from backfill_assets_tests.builders import COLUMNS, a_model, days

CARRY, DROP = KeptRows.CARRY, KeptRows.DROP


def keeping(**declared: Any) -> Model:  # noqa: ANN401
    given: dict[str, Any] = {"kind": IncrementalByUniqueKey("ds"), "deletes": "none", **declared}
    return a_model("web.orders", **given)


def decided(
    asked: KeptRows | None,
    category: Category = Category.BREAKING,
    old: Model | None = None,
    new: Model | None = None,
) -> KeptRows | None:
    change = ModelChange(
        change=Change.MODIFIED, category=category, new_version=True, fingerprint="f", version="v"
    )
    return kept_rows(asked, change, (old or keeping(), new or keeping()), days(1, 2))


def test_a_wider_table_carries_them_and_nobody_is_asked():
    assert decided(None, Category.NON_BREAKING) is CARRY


def test_a_breaking_change_is_refused_until_a_person_says():
    with pytest.raises(RequestError, match="its 2 published cells may hold some"):
        decided(None)
    assert decided(CARRY) is CARRY
    assert decided(DROP) is DROP


@pytest.mark.parametrize(
    "other",
    [{"unique_key": ["ds"]}, {"cadence": Monthly(start="2024-01-01")}],
    ids=["key", "cells"],
)
def test_rows_of_another_shape_can_only_be_dropped(other: dict[str, Any]):
    new = keeping(**other)
    with pytest.raises(RequestError, match="Use --kept-rows drop, or keep the old"):
        decided(CARRY, new=new)
    assert decided(DROP, new=new) is DROP


def test_a_model_that_keeps_no_rows_has_nothing_to_decide():
    assert decided(None, new=a_model("web.orders")) is None
    absent = keeping(deletes="absent", cadence=Daily(start="2024-01-01"))
    assert decided(None, new=absent) is None


def test_a_new_column_that_must_have_a_value_is_named_since_carried_rows_have_none():
    must = keeping(columns=[*COLUMNS, Column("page", "string", nullable=False)])
    may = keeping(columns=[*COLUMNS, Column("page", "string")])

    assert (lacking_values(keeping(), must) or "").startswith("carried rows have no page, which")
    assert lacking_values(keeping(), may) is None
    assert lacking_values(must, must) is None
