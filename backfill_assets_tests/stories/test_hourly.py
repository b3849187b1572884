"""An hourly model is planned, reviewed and promoted while its hours go on being filled."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories.hourly import (
    CLICKS,
    DAILY,
    FILLED,
    HOURS,
    add_seconds,
    hour,
    hourly_project,
)
from backfill_assets_tests.stories.published import ask, rows
from backfill_assets_tests.stories.readers import Poller

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.stories.project import Ended, Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]


@pytest.fixture
def hourly(tmp_path: Path, one_spark: SparkSession, enter: Callable[[Project], Project]) -> Project:
    """Two of three days filled."""
    project = enter(hourly_project(tmp_path / "project"))
    project.do("run", "--end", hour(FILLED))
    return project


def test_hours_that_were_filled_during_the_review_are_carried_over_with_the_new_logic(
    hourly: Project,
):
    add_seconds(hourly)
    plan = hourly.plan("--end", hour(FILLED))
    hourly.do("run", "--select", CLICKS, "--end", hour(FILLED + 1))
    hourly.do("apply", plan.plan_id)
    hourly.do("run", "--select", CLICKS, "--end", hour(FILLED + 3))
    assert "second" not in rows(hourly, CLICKS)[0]

    promoted = hourly.do("promote", plan.plan_id, "--yes")

    assert f"appended since it was made: {CLICKS}" in promoted.said
    found = rows(hourly, CLICKS)
    assert len(found) == 2 * (FILLED + 3)
    assert_all_hours(hourly, FILLED + 3)
    hourly.do("run")
    assert_all_hours(hourly, HOURS)


@pytest.mark.slow  # two processes with a Spark each
def test_a_promotion_in_the_middle_of_a_fill_by_another_process_loses_and_doubles_nothing(
    hourly: Project,
):
    add_seconds(hourly)
    plan = hourly.plan("--end", hour(FILLED))
    hourly.do("apply", plan.plan_id)
    ended: list[Ended] = []
    filling = threading.Thread(target=lambda: ended.append(hourly.process("run")))

    with Poller(hourly, models=(CLICKS,)) as poller:
        filling.start()
        while filling.is_alive() and not filled_since(hourly):
            filling.join(0.1)
        hourly.do("promote", plan.plan_id, "--yes")
        filling.join()

    assert poller.errors == []
    assert "Traceback" not in ended[0].err
    hourly.do("run")
    assert_all_hours(hourly, HOURS)
    assert "nothing to do" in hourly.do("plan").out


def filled_since(project: Project) -> int:
    """Count the batches of prod that were committed after the first two days."""
    return ask(
        project,
        "SELECT COUNT(*) FROM batches WHERE environment = 'prod' AND status = 'committed' "
        "AND model = ? AND starts >= 1704067200 + 3600 * ?",
        CLICKS,
        FILLED,
    )[0][0]


def assert_all_hours(project: Project, hours: int) -> None:
    """Each click of so many hours is there once, with its second; whole days are counted."""
    found = rows(project, CLICKS)
    assert sorted(row["click_id"] for row in found) == list(range(2 * hours))
    assert all(row["second"] == row["clicked_at"].second for row in found)
    assert [row["clicks"] for row in rows(project, DAILY)] == [48] * (hours // 24)
