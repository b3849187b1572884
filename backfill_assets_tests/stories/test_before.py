"""What the stories start from is what they believe it to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.project import LAST_OF_QUARTER, LAST_OF_YEAR

if TYPE_CHECKING:
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_a_copy_of_a_filled_project_holds_what_the_events_say_and_lacks_nothing(quarter: Project):
    assert_published(quarter, oracle.history(quarter, last=LAST_OF_QUARTER))

    assert "nothing to do" in quarter.do("run").out


@pytest.mark.story
def test_540_days_hold_what_the_events_say(history: Project):
    assert_published(history, oracle.history(history, last=LAST_OF_YEAR))


@pytest.mark.story
def test_before_s2_conversions_count_on_the_day_that_they_were_reported_on(reported: Project):
    expected = oracle.history(reported, last=LAST_OF_QUARTER, counted_on=oracle.by_reported_day)

    assert_published(reported, expected)
