"""The small world of execution, on whichever Spark the test run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.engine.conftest import beginnings, clock, world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["beginnings", "clock", "world"]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """Compute rows on Spark: what it does with them is what these tests are about."""
    return spark
