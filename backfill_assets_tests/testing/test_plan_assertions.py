"""Plans held against what a test expects."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backfill_assets.planning.plan.plan import Plan
from backfill_assets.testing import UPDATE, assert_plan, plan_text
from backfill_assets_tests.render.plans import added_columns

PLAN = added_columns()


def test_the_text_of_a_plan_does_not_depend_on_when_and_by_whom_it_was_made():
    later = replace(
        PLAN,
        plan_id="p000000000",
        created_at=PLAN.created_at + timedelta(days=1),
        expires_at=PLAN.expires_at + timedelta(days=1),
        request=replace(PLAN.request, asked_by="grace"),
        estimate=None,
        seen=PLAN.seen + 1,
    )

    assert plan_text(later) == plan_text(PLAN)


def test_a_plan_that_is_another_one_is_shown_as_a_difference(tmp_path: Path):
    golden = tmp_path / "plan.txt"
    golden.write_text(plan_text(PLAN).replace("prod (protected)", "dev"))

    with pytest.raises(
        AssertionError, match=r"-dev\n\+prod \(protected\)(.|\n)*UPDATE_GOLDEN_FILES=1"
    ):
        assert_plan(PLAN, golden)


def test_a_file_that_is_not_there_yet_is_a_difference_and_not_written(tmp_path: Path):
    with pytest.raises(AssertionError, match="the plan is another one"):
        assert_plan(PLAN, tmp_path / "plan.txt")

    assert not (tmp_path / "plan.txt").exists()


def test_golden_files_are_written_where_the_variable_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    golden = tmp_path / "plans" / "plan.txt"
    monkeypatch.setenv(UPDATE, "1")
    assert_plan(PLAN, golden)
    monkeypatch.delenv(UPDATE)

    assert_plan(PLAN, golden)


def test_a_model_that_was_not_expected_is_a_difference():
    first, *others = [planned for planned in PLAN.models if planned.cells]
    cells = {planned.model: planned.cells for planned in others}

    with pytest.raises(AssertionError, match=rf"\+cells {first.model}: \["):
        assert_plan(PLAN, cells=cells)
    assert_plan(PLAN, cells={**cells, first.model: first.cells})


def test_what_is_not_given_is_not_looked_at():
    assert_plan(PLAN)
    with pytest.raises(AssertionError, match=r"\+change"):
        assert_plan(PLAN, change={})
    with pytest.raises(AssertionError, match=r"\+category"):
        assert_plan(PLAN, categories={})


def test_nothing_planned_is_expected_by_an_empty_mapping():
    nothing: Plan = replace(PLAN, models=())

    assert_plan(nothing, change={}, cells={}, categories={})
