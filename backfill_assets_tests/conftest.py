"""What all tests share: how hard hypothesis tries (HYPOTHESIS_PROFILE), one of each server."""

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
    from backfill_assets_tests.s3 import S3Server

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None)
settings.register_profile("nightly", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    """Where the S3 server of the test run will listen; Spark finds it in the environment it starts in."""
    from backfill_assets_tests.s3 import environment  # noqa: PLC0415
    from backfill_assets_tests.spark import free_port  # noqa: PLC0415

    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(port).items():
            patch.setenv(name, value)
        yield port


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, s3_port: int) -> Iterator[S3Server]:
    """One S3 server for the whole test run; without Spark's jars for it its tests are skipped, loudly."""
    from backfill_assets_tests.s3 import NoS3Error, s3_server  # noqa: PLC0415

    with ExitStack() as running:
        try:
            server = running.enter_context(s3_server(s3_port))
        except NoS3Error as error:
            request.config.stash[_MISSING].append(f"NOT TESTED ON S3: {error}")
            pytest.skip(f"NOT TESTED ON S3: {error}")
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, s3_port: int) -> Iterator[SparkSession]:
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
            request.config.stash[_MISSING].append(f"NOT TESTED ON POSTGRESQL: {error}")
            pytest.skip(f"NOT TESTED ON POSTGRESQL: {error}")
        yield server


_MISSING = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_MISSING] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever takes a Spark session, so that `-m "not spark"` is what needs no JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for found in config.stash[_MISSING]:
        name, _, cause = found.partition(": ")
        terminalreporter.section(name, red=True, bold=True)
        terminalreporter.write_line(cause)
