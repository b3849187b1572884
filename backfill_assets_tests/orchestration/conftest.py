from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets_tests.orchestration.shop import Shop
from backfill_assets_tests.toy import land

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def landed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy's sources, landed once; every test works on a copy."""
    root = tmp_path_factory.mktemp("toy")
    land(spark, str(root))
    return root


@pytest.fixture
def shop(
    spark: SparkSession, landed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    root = tmp_path / "data"
    shutil.copytree(landed, root)
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(root))
    with dg.DagsterInstance.ephemeral(str(tmp_path)) as instance:
        yield Shop(spark, str(root), instance)
