"""Others are at work: two plans at once, a fill that goes on, code that is edited meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch import effects
from backfill_assets.engine.batch.effects import Effects
from backfill_assets.warehouse.rows.computed import computed_batch
from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.edits import (
    add_conversion_value,
    smaller_batches,
    worth_six_dollars,
)
from backfill_assets_tests.stories.landing import raise_cost
from backfill_assets_tests.stories.project import (
    FILLED,
    LAST_OF_QUARTER,
    PERFORMANCE,
    ROI,
    TRENDS,
    day,
)
from backfill_assets_tests.stories.published import batches_of, proof, rows

if TYPE_CHECKING:
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]


def test_a_second_plan_over_the_same_cells_is_refused_before_a_write_and_names_the_first(
    quarter: Project,
):
    first = quarter.plan("--restate", f"{ROI}:{day(5)}..{day(8)}")
    second = quarter.plan("--restate", f"{ROI}:{day(8)}..{day(9)}")
    quarter.do("apply", first.plan_id)
    before = proof(quarter, ROI)

    refused = quarter.do("apply", second.plan_id, code=1)

    assert first.plan_id in refused.err
    assert ROI in refused.err
    assert batches_of(quarter, plan=second.plan_id) == []
    assert proof(quarter, ROI) == before


def test_two_plans_over_different_models_are_built_and_promoted_side_by_side(quarter: Project):
    first = quarter.plan("--restate", f"{ROI}:{day(5)}..{day(8)}")
    other = quarter.plan("--restate", f"{TRENDS}:2024-02-01..2024-02-29")

    for plan in (first, other):
        quarter.do("apply", plan.plan_id)
    for plan in (first, other):
        quarter.do("promote", plan.plan_id, "--yes")

    assert [status for _, status, _ in batches_of(quarter, plan=first.plan_id)] == ["committed"]
    assert_published(quarter, oracle.history(quarter, last=LAST_OF_QUARTER))
    assert "nothing to do" in quarter.do("plan").out


def test_a_plan_that_the_world_has_moved_away_from_is_refused_before_its_first_write(
    quarter: Project,
):
    raise_cost(quarter, [day(10)])
    late = quarter.plan("--restate", f"{ROI}:{day(8)}..{day(12)}")
    early = quarter.plan("--restate", f"marketing.ad_events:{day(10)}")
    quarter.do("apply", early.plan_id)
    quarter.do("promote", early.plan_id, "--yes")

    refused = quarter.do("apply", late.plan_id, code=1)

    assert str(day(10)) in refused.err
    assert batches_of(quarter, plan=late.plan_id) == []


def test_an_edit_is_deployed_and_prod_is_filled_with_its_own_logic_until_the_promotion_carries_over(
    weeks: Project,
):
    add_conversion_value(weeks)
    plan = weeks.plan("--end", str(day(FILLED - 1)))
    weeks.do("apply", plan.plan_id)

    weeks.do("run")

    assert_published(weeks, oracle.history(weeks, last=LAST_OF_QUARTER))
    promoted = weeks.do("promote", plan.plan_id, "--yes")
    # The last week of performance was planned: the month that the plan ends in reads it.
    assert f"appended since it was made: {ROI} {day(FILLED)}" in promoted.said
    assert_published(weeks, oracle.history(weeks, last=LAST_OF_QUARTER, valued=True))
    assert "nothing to do" in weeks.do("run").out
    assert "nothing to do" in weeks.do("plan").out


def test_an_edit_while_a_plan_is_built_stops_the_rest_and_what_is_done_stays(
    quarter: Project, monkeypatch: pytest.MonkeyPatch
):
    add_conversion_value(quarter)
    smaller_batches(quarter, 40)
    plan = quarter.plan()

    def edited_meanwhile(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        monkeypatch.setattr(effects, "USUAL", Effects())
        worth_six_dollars(quarter)
        return computed_batch(*given, **named)

    monkeypatch.setattr(effects, "USUAL", Effects(computed=edited_meanwhile))

    stopped = quarter.do("apply", plan.plan_id, code=1)

    assert "code has changed" in stopped.said
    assert ROI in stopped.said
    done = [batch for batch in batches_of(quarter, plan=plan.plan_id) if batch[1] == "committed"]
    assert 1 <= len(done) <= 2, "those that had begun"
    assert quarter.do("apply", plan.plan_id, code=1).err

    quarter.edit("roi_analysis.sql", "(6.00 - cost", "(5.00 - cost")
    quarter.do("apply", plan.plan_id)

    committed = [
        batch for batch in batches_of(quarter, plan=plan.plan_id) if batch[1] == "committed"
    ]
    assert len(committed) == 6, "nothing was built twice"
    quarter.do("promote", plan.plan_id, "--yes")
    assert_published(quarter, oracle.history(quarter, last=LAST_OF_QUARTER, valued=True))
    assert len(rows(quarter, ROI)) == len(rows(quarter, PERFORMANCE))
