"""A fresh world for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.state.store import Store
from backfill_assets_tests.engine.beginnings import Beginnings
from backfill_assets_tests.engine.world import LEASE, Clock, World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> Beginnings:
    return Beginnings(tmp_path_factory.mktemp("beginnings"))


@pytest.fixture
def world(
    spark: SparkSession, tmp_path: Path, clock: Clock, beginnings: Beginnings
) -> Iterator[World]:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with Store.open(
        url, clock=clock, lease_seconds=LEASE.total_seconds(), data_root=str(tmp_path)
    ) as store:
        yield World(spark, tmp_path, store, clock, beginnings=beginnings)
