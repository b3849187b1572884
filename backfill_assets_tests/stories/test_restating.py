"""A source was wrong: thirty days are restated, of which four really differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.planning.plan.plan import Build
from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.landing import delete_day, raise_cost
from backfill_assets_tests.stories.project import (
    LAST_OF_QUARTER,
    PERFORMANCE,
    ROI,
    TRENDS,
    day,
)
from backfill_assets_tests.stories.published import batches_of, built_days, rows
from backfill_assets_tests.stories.readers import failing_at

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]

THIRTY = f"marketing.ad_events:{day(30)}..{day(59)}"
WRONG = (day(35), day(36), day(50), day(59))
MARCH, FEBRUARY = day(60), day(31)


def test_of_thirty_restated_days_four_differ_and_downstream_only_their_readers_are_built(
    quarter: Project,
):
    raise_cost(quarter, WRONG)

    plan = quarter.plan("--restate", THIRTY, "--reason", "clicks were too cheap")

    assert_thirty_are_certain(plan)
    quarter.do("apply", plan.plan_id)
    assert built_days(quarter, PERFORMANCE, plan) == [day(number) for number in range(30, 60)]
    assert built_days(quarter, ROI, plan) == list(WRONG)
    assert built_days(quarter, TRENDS, plan) == [FEBRUARY, MARCH]
    quarter.do("promote", plan.plan_id, "--yes")
    assert_published(quarter, oracle.history(quarter, last=LAST_OF_QUARTER))
    assert "nothing to do" in quarter.do("plan").out
    assert "nothing to do" in quarter.do("run").out


def test_a_restatement_with_one_failing_child_is_finished_without_being_asked_for(
    quarter: Project,
):
    raise_cost(quarter, WRONG)
    plan = quarter.plan("--restate", THIRTY)

    with failing_at(ROI, WRONG[1]) as failed:
        quarter.do("apply", plan.plan_id, code=1)

    assert failed
    before = len(batches_of(quarter, plan=plan.plan_id))
    assert plan.plan_id in quarter.do("plan", code=2).said, (
        "it is still owed, and somebody is at it"
    )

    quarter.do("apply", plan.plan_id)

    assert batches_of(quarter, plan=plan.plan_id)[before:] == [(ROI, "committed", 2)]
    quarter.do("promote", plan.plan_id, "--yes")
    assert_published(quarter, oracle.history(quarter, last=LAST_OF_QUARTER))
    assert "nothing to do" in quarter.do("plan").out


def test_a_day_whose_events_were_deleted_becomes_empty(quarter: Project):
    gone = day(45)
    delete_day(quarter, gone)

    plan = quarter.plan("--restate", f"marketing.ad_events:{gone}", "--reason", "never happened")
    quarter.do("apply", plan.plan_id)
    assert any(row["ds"] == gone for row in rows(quarter, PERFORMANCE))
    quarter.do("promote", plan.plan_id, "--yes")

    for model in (PERFORMANCE, ROI):
        assert not any(row["ds"] == gone for row in rows(quarter, model))
    assert_published(quarter, oracle.history(quarter, last=LAST_OF_QUARTER))
    assert "nothing to do" in quarter.do("run").out


def assert_thirty_are_certain(plan: Plan) -> None:
    performance, roi, trends = (plan.model(name) for name in (PERFORMANCE, ROI, TRENDS))
    assert performance is not None
    assert roi is not None
    assert trends is not None
    assert {planned.build for planned in plan.models} == {Build.IN_PLACE}
    for model in (performance, roi):
        assert sum((end - start) // 86_400 for start, end in model.cells.pairs()) == 30
    assert performance.certain == performance.cells
    assert not roi.certain
    assert not trends.certain
