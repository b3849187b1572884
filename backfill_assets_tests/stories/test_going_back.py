"""Back again: rollback and undo, with what was published since, and without the bad data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.edits import add_conversion_value
from backfill_assets_tests.stories.landing import raise_cost
from backfill_assets_tests.stories.project import LAST_OF_QUARTER, PERFORMANCE, day
from backfill_assets_tests.stories.published import batches_of

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]

BAD = (day(20), day(21), day(22), day(23))
SPAN = f"marketing.ad_events:{BAD[0]}..{BAD[-1]}"


def test_undo_brings_back_four_days_keeps_the_week_since_and_no_fill_brings_the_bad_data_back(
    weeks: Project,
):
    raise_cost(weeks, BAD)  # a correction that turns out to be wrong
    plan = published(weeks, "--restate", SPAN)
    weeks.do("run")
    assert_published(weeks, oracle.history(weeks, last=LAST_OF_QUARTER))

    weeks.do("undo", plan.plan_id, "--yes", "--reason", "the correction was wrong")

    expected = oracle.history(weeks, last=LAST_OF_QUARTER, version=0)
    weeks.do("run")
    assert_published(weeks, expected)
    assert "nothing to do" in weeks.do("run").out
    assert_published(weeks, expected)


def test_a_rollback_within_a_version_publishes_what_was_there_before(quarter: Project):
    raise_cost(quarter, BAD)
    plan = published(quarter, "--restate", SPAN)

    quarter.do("rollback", plan.plan_id, "--yes")

    expected = oracle.history(quarter, last=LAST_OF_QUARTER, version=0)
    assert_published(quarter, expected)
    quarter.do("run")
    assert_published(quarter, expected)


def test_a_rollback_to_another_version_moves_pointers_and_fills_the_week_since_with_the_old_logic(
    weeks: Project,
):
    add_conversion_value(weeks)
    plan = published(weeks)
    weeks.do("run")
    assert_published(weeks, oracle.history(weeks, last=LAST_OF_QUARTER, valued=True))

    weeks.do("rollback", plan.plan_id, "--yes", "--reason", "finance disagrees")

    weeks.do("run")
    assert_published(weeks, oracle.history(weeks, last=LAST_OF_QUARTER))
    assert "nothing to do" in weeks.do("run").out
    again = weeks.plan()
    assert again.model(PERFORMANCE) is not None, "the loaded code is still another one"


def test_undo_is_refused_with_the_later_plan_where_that_touched_the_same_cells(quarter: Project):
    raise_cost(quarter, BAD)
    first = published(quarter, "--restate", SPAN)
    raise_cost(quarter, BAD[1:2])
    second = published(quarter, "--restate", f"marketing.ad_events:{BAD[1]}")
    expected = oracle.history(quarter, last=LAST_OF_QUARTER)
    batches = batches_of(quarter)

    refused = quarter.do("undo", first.plan_id, "--yes", code=1)

    assert second.plan_id in refused.err
    assert str(BAD[1]) in refused.err
    assert batches_of(quarter) == batches
    assert_published(quarter, expected)


def published(project: Project, *words: str) -> Plan:
    """Plan, build and promote."""
    plan = project.plan(*words)
    project.do("apply", plan.plan_id)
    project.do("promote", plan.plan_id, "--yes")
    return plan
