"""S1: three columns are added to performance, and return on investment reads one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets import resolve
from backfill_assets.planning.plan.plan import Build, Change
from backfill_assets.planning.plan.request import Category
from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.edits import NEW_COLUMNS, add_conversion_value, trends_follow
from backfill_assets_tests.stories.project import (
    LAST_OF_QUARTER,
    LAST_OF_YEAR,
    MODELS,
    PERFORMANCE,
    ROI,
    TRENDS,
    day,
)
from backfill_assets_tests.stories.published import batches_of, proof
from backfill_assets_tests.stories.readers import Poller, failing_at

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]


def test_540_days_are_added_to_while_a_reader_sees_all_old_or_all_new_and_trends_stay_untouched(
    year: Project,
):
    before = {model: resolve(model, settings=year.settings) for model in MODELS}
    trends_before = proof(year, TRENDS)
    add_conversion_value(year)

    with Poller(year) as poller:
        plan = year.plan("--reason", "what conversions are worth")
        assert_additive(plan, days=540)
        [untouched] = plan.untouched
        assert untouched.model == TRENDS
        assert "reads none of" in untouched.because
        for column in NEW_COLUMNS:
            assert column in untouched.because

        with failing_at(PERFORMANCE, day(200)) as hit:
            failed = year.do("apply", plan.plan_id, code=1)
        assert len(hit) == 1
        assert f"backfill apply {plan.plan_id}" in failed.err
        built = batches_of(year, plan=plan.plan_id)
        assert sorted(built) == [
            (PERFORMANCE, "committed", 180),
            (PERFORMANCE, "committed", 180),
            (PERFORMANCE, "failed", 180),
            (ROI, "committed", 180),
            (ROI, "committed", 180),
        ]
        assert year.do("promote", plan.plan_id, "--yes", code=1).err

        year.do("apply", plan.plan_id)
        again = batches_of(year, plan=plan.plan_id)[len(built) :]
        assert again == [(PERFORMANCE, "committed", 180), (ROI, "committed", 180)]

        year.do("promote", plan.plan_id, "--yes")
        after = {model: resolve(model, settings=year.settings) for model in MODELS}

    assert poller.errors == []
    assert poller.looks > 2  # before, after, and between
    assert poller.seen == [before, after]
    assert poller.rows[0] == poller.rows[1]
    assert proof(year, TRENDS) == trends_before
    assert_published(year, oracle.history(year, last=LAST_OF_YEAR, valued=True))
    assert_nothing_left(year)


def test_in_the_variant_the_monthly_trends_follow_the_new_column(quarter: Project):
    add_conversion_value(quarter)
    trends_follow(quarter)

    plan = quarter.plan()

    assert_additive(plan, days=91)
    trends = plan.model(TRENDS)
    assert trends is not None
    assert trends.category is Category.NON_BREAKING
    assert plan.untouched == ()
    quarter.do("apply", plan.plan_id)
    quarter.do("promote", plan.plan_id, "--yes")
    expected = oracle.history(quarter, last=LAST_OF_QUARTER, valued=True, trends_valued=True)
    assert_published(quarter, expected)
    assert_nothing_left(quarter)


def assert_additive(plan: Plan, *, days: int) -> None:
    """Both models are non-breaking, of new versions, and all days are certain."""
    for name in (PERFORMANCE, ROI):
        model = plan.model(name)
        assert model is not None
        assert model.change is Change.MODIFIED
        assert model.category is Category.NON_BREAKING
        assert model.build is Build.NEW_VERSION
        assert sum((end - start) // 86_400 for start, end in model.certain.pairs()) == days
        assert not model.kept


def assert_nothing_left(project: Project) -> None:
    """The rule finds nothing to do, neither for a plan nor for a run."""
    assert "nothing to do" in project.do("plan").out
    assert "nothing to do" in project.do("run").out
