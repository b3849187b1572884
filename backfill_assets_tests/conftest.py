"""What all tests share: how hard hypothesis tries (HYPOTHESIS_PROFILE), and one Spark session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None)
settings.register_profile("nightly", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session with Delta for the whole test run."""
    from backfill_assets_tests.spark import chosen_session  # noqa: PLC0415 - Spark is heavy

    with chosen_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
