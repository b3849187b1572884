"""Changes whose history is not computed: forward-only, from a date, and an empty backfill."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.edits import worth_six_dollars
from backfill_assets_tests.stories.project import FILLED, LAST_OF_QUARTER, PERFORMANCE, ROI, day
from backfill_assets_tests.stories.published import batches_of, rows

if TYPE_CHECKING:
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]

MARCH = date(2024, 3, 1)


def test_forward_only_from_a_date_computes_from_there_and_keeps_what_came_before(
    quarter: Project,
):
    worth_six_dollars(quarter)

    plan = quarter.plan("--forward-only", "--effective-from", str(MARCH))
    quarter.do("apply", plan.plan_id)
    quarter.do("promote", plan.plan_id, "--yes")

    assert batches_of(quarter, plan=plan.plan_id) == [(ROI, "committed", 31)]
    assert_published(quarter, worth_six_from(quarter, MARCH))
    assert "nothing to do" in quarter.do("plan").out
    assert "nothing to do" in quarter.do("run").out


def test_forward_only_computes_nothing_and_the_next_days_have_the_new_logic(weeks: Project):
    worth_six_dollars(weeks)

    plan = weeks.plan("--forward-only", "--select", ROI, "--end", str(day(FILLED - 1)))
    weeks.do("apply", plan.plan_id)
    weeks.do("promote", plan.plan_id, "--yes")

    assert batches_of(weeks, plan=plan.plan_id) == []
    weeks.do("run")
    assert_published(weeks, worth_six_from(weeks, day(FILLED)))
    assert "nothing to do" in weeks.do("plan").out


def test_an_empty_backfill_records_what_lacks_without_computing_and_why_says_so_for_ever(
    weeks: Project,
):
    before = {model: rows(weeks, model) for model in (PERFORMANCE, ROI)}

    plan = weeks.plan("--empty", "--reason", "the networks sent nothing that week")
    weeks.do("apply", plan.plan_id)

    assert "nothing to do" in weeks.do("run").out
    assert "nothing to do" in weeks.do("plan").out
    why = weeks.do("why", ROI, str(day(FILLED)))
    assert "not computed" in why.said
    assert plan.plan_id in why.said
    assert {model: rows(weeks, model) for model in before} == before


def test_an_empty_backfill_never_blanks_what_is_published(quarter: Project):
    worth_six_dollars(quarter)

    refused = quarter.do("plan", "--empty", "--reason", "nobody looks back", code=1)

    assert f"91 published cells of '{ROI}'" in refused.said
    assert "--cutoff" in refused.said


def worth_six_from(project: Project, first: date) -> dict[str, list[oracle.Row]]:
    """Give all models, an acquisition being worth six dollars from a day on."""
    expected = oracle.history(project, last=LAST_OF_QUARTER)
    new = oracle.roi(expected[PERFORMANCE], worth="6.00")
    old = [row for row in expected[ROI] if row["ds"] < first]
    return expected | {ROI: [*old, *(row for row in new if row["ds"] >= first)]}
