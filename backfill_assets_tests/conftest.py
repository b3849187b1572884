"""What all tests share: how hard hypothesis tries (HYPOTHESIS_PROFILE), one Spark, one PostgreSQL."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from backfill_assets_tests.postgres import Server

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None)
settings.register_profile("nightly", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session with Delta for the whole test run."""
    from backfill_assets_tests.spark import chosen_session  # noqa: PLC0415 - Spark is heavy

    with chosen_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One PostgreSQL server for the whole test run; without one its tests are skipped, loudly."""
    from backfill_assets_tests.postgres import NoPostgresError, postgres_server  # noqa: PLC0415

    with ExitStack() as running:
        try:
            server = running.enter_context(postgres_server())
        except NoPostgresError as error:
            request.config.stash[_MISSING].append(str(error))
            pytest.skip(f"NOT TESTED ON POSTGRESQL: {error}")
        yield server


_MISSING = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_MISSING] = []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for found in config.stash[_MISSING][:1]:
        terminalreporter.section("NOT TESTED ON POSTGRESQL", red=True, bold=True)
        terminalreporter.write_line(found)
