"""S2: conversions count by their own time. Built in the shadow, found wrong, righted, abandoned."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Category
from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.edits import (
    conversions_by_own_day_in_a_wrong_zone,
    only_last_clicks,
    right_the_zone,
)
from backfill_assets_tests.stories.project import (
    LAST_OF_QUARTER,
    MODELS,
    PERFORMANCE,
    ROI,
    TRENDS,
)
from backfill_assets_tests.stories.published import proof

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]

SOME_DAYS = "2024-02-01..2024-02-29"


def test_a_bug_of_a_breaking_change_shows_in_the_diff_and_prod_never_knew(reported: Project):
    before = {model: proof(reported, model) for model in MODELS}

    conversions_by_own_day_in_a_wrong_zone(reported)
    wrong = reported.plan("--reason", "acquisitions by the conversion's own time")
    assert [model.model for model in wrong.models] == list(MODELS)
    assert {model.category for model in wrong.models} == {Category.BREAKING}
    assert {model.build for model in wrong.models} == {Build.NEW_VERSION}
    reported.do("apply", wrong.plan_id)

    days = by_group(reported.do("diff", wrong.plan_id, PERFORMANCE, "--json", code=2).json)
    known = conversions(reported, oracle.by_event_day)
    assert old(days) == conversions(reported, oracle.by_reported_day)
    assert new(days) == conversions(reported, oracle.by_own_day_in_a_wrong_zone)
    shifted = [day for day in known if new(days)[day] != known[day]]
    assert len(shifted) > len(known) / 2, "a bug of the zone shows on most days"
    campaigns = reported.do(
        *(
            "diff",
            wrong.plan_id,
            PERFORMANCE,
            "--by",
            "campaign_id",
            "--cells",
            SOME_DAYS,
            "--json",
        ),
        code=2,
    )
    assert len(by_group(campaigns.json)) == 60
    shown = reported.do("diff", wrong.plan_id, PERFORMANCE, "--cells", SOME_DAYS, code=2).out
    assert any(f"{day}" in shown and "conversions" in shown for day in shifted)
    reported.do("abandon", wrong.plan_id, "--reason", "time-zone bug")

    right_the_zone(reported)
    right = reported.plan("--reason", "acquisitions by the conversion's own time")
    reported.do("apply", right.plan_id)
    days = by_group(reported.do("diff", right.plan_id, PERFORMANCE, "--json", code=2).json)
    assert new(days) == known
    reported.do("abandon", right.plan_id, "--reason", "not this quarter")

    assert {model: proof(reported, model) for model in MODELS} == before
    assert "nothing to do" in reported.do("run").out
    assert reported.do("promote", right.plan_id, "--yes", code=1).err


def test_a_breaking_change_is_promoted_with_everything_that_reads_it(quarter: Project):
    only_last_clicks(quarter)
    plan = quarter.plan("--reason", "only last clicks count")
    quarter.do("apply", plan.plan_id)

    quarter.do("promote", plan.plan_id, "--yes")

    # Conversions of other clicks stay events of their day, but bring nothing any more.
    events = [
        event if event["attribution"] in (None, "last_click") else event | {"event_type": "other"}
        for event in oracle.landed_events(quarter)
    ]
    days = oracle.performance(events, last=LAST_OF_QUARTER)
    trends = oracle.trends(days, last=LAST_OF_QUARTER)
    assert_published(quarter, {PERFORMANCE: days, ROI: oracle.roi(days), TRENDS: trends})
    assert "nothing to do" in quarter.do("plan").out
    assert "nothing to do" in quarter.do("run").out


def by_group(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the lines of the comparison of the one model that was asked for."""
    [model] = told["models"]
    return {group["by"][0]: group["columns"]["conversions"] for group in model["groups"]}


def old(groups: dict[str, dict[str, Any]]) -> dict[date, int]:
    return _sums(groups, "old_sum")


def new(groups: dict[str, dict[str, Any]]) -> dict[date, int]:
    return _sums(groups, "new_sum")


def _sums(groups: dict[str, dict[str, Any]], side: str) -> dict[date, int]:
    return {date.fromisoformat(day[:10]): int(sums[side]) for day, sums in groups.items()}


def conversions(project: Project, counted_on: Callable[[oracle.Row], date]) -> dict[date, int]:
    """Count the conversions of every day of the history, by the one time or the other."""
    events = oracle.landed_events(project)
    found = Counter(counted_on(event) for event in events if event["event_type"] == "conversion")
    days = {event["event_date"] for event in events if event["event_date"] <= LAST_OF_QUARTER}
    return {day: found[day] for day in sorted(days)}
