"""Projects that are filled once; every story works on a copy."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from backfill_assets.testing import entered, shared_spark
from backfill_assets_tests.stories.edits import conversions_by_reported_day
from backfill_assets_tests.stories.project import (
    FILLED,
    LAST_OF_QUARTER,
    PERFORMANCE,
    QUARTER,
    ROI,
    TRENDS,
    Project,
    copied,
    day,
    land_events,
    new_project,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

DAYS = 540
EVENTS, QUARTER_EVENTS = 20_000, 12_000


@pytest.fixture(scope="session")
def one_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Every command takes the session of the tests, and leaves it running."""
    with shared_spark(spark):
        yield spark


@pytest.fixture(scope="session")
def history(one_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All 540 days, filled. Never written to again."""
    project = new_project(tmp_path_factory.mktemp("history") / "project")
    land_events(one_spark, project, rows=EVENTS, days=DAYS)
    return _filled(project)


@pytest.fixture(scope="session")
def first_weeks(one_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The first 91 days, of which the last week is not filled yet. Never written to again."""
    project = _quarter(tmp_path_factory.mktemp("weeks") / "project", one_spark)
    daily = ("--select", f"{PERFORMANCE},{ROI}", "--end", str(day(FILLED - 1)))
    return _filled(project, daily, ("--select", TRENDS, "--end", "2024-02-29"))


@pytest.fixture(scope="session")
def first_quarter(first_weeks: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The first 91 days, filled. Never written to again."""
    return _filled(copied(first_weeks, tmp_path_factory.mktemp("quarter") / "project"))


@pytest.fixture(scope="session")
def first_reported(one_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The same, conversions counted on the day that they were reported on."""
    project = _quarter(tmp_path_factory.mktemp("reported") / "project", one_spark)
    conversions_by_reported_day(project)
    return _filled(project)


@pytest.fixture
def year(history: Project, tmp_path: Path, enter: Callable[[Project], Project]) -> Project:
    """A copy of the 540 days."""
    return enter(copied(history, tmp_path / "project"))


@pytest.fixture
def quarter(first_quarter: Project, tmp_path: Path, enter: Callable[[Project], Project]) -> Project:
    """A copy of the 91 days."""
    return enter(copied(first_quarter, tmp_path / "project"))


@pytest.fixture
def weeks(first_weeks: Project, tmp_path: Path, enter: Callable[[Project], Project]) -> Project:
    """A copy of the 91 days that lacks the last week."""
    return enter(copied(first_weeks, tmp_path / "project"))


@pytest.fixture
def reported(
    first_reported: Project, tmp_path: Path, enter: Callable[[Project], Project]
) -> Project:
    """A copy of the 91 days with conversions by the day that they were reported on."""
    return enter(copied(first_reported, tmp_path / "project"))


@pytest.fixture
def enter() -> Iterator[Callable[[Project], Project]]:
    """Work on a project: in its folder, with its variables."""
    with ExitStack() as stack:
        yield lambda project: stack.enter_context(entered(project))


def _quarter(folder: Path, spark: SparkSession) -> Project:
    project = new_project(folder, last_day=str(LAST_OF_QUARTER))
    land_events(spark, project, rows=QUARTER_EVENTS, days=QUARTER)
    return project


def _filled(project: Project, *runs: tuple[str, ...]) -> Project:
    with entered(project):
        for words in runs or ((),):
            project.do("run", *words)
    return project
