"""A fresh world for every test.

Its rows are computed without a JVM, by `fake_warehouse`, unless the test is marked `spark`, or
BACKFILL_TEST_SPARK names the kind of Spark on which all are to run. It has an Iceberg catalogue, whose names
must stand for what is published when the test ends.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.project.iceberg import CATALOGUE
from backfill_assets.state.store import Store
from backfill_assets_tests.engine.beginnings import Beginnings
from backfill_assets_tests.engine.names import names_followed
from backfill_assets_tests.engine.world import LEASE, Clock, World
from backfill_assets_tests.fake_warehouse import fake_warehouse
from backfill_assets_tests.new_state import begin_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> Beginnings:
    return Beginnings(tmp_path_factory.mktemp("beginnings"))


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What computes the rows of a world."""
    if request.node.get_closest_marker("spark") or "BACKFILL_TEST_SPARK" in os.environ:
        yield request.getfixturevalue("spark")
        return
    with fake_warehouse() as fake:
        yield fake


@pytest.fixture
def world(
    session: Any,  # noqa: ANN401
    tmp_path: Path,
    clock: Clock,
    beginnings: Beginnings,
) -> Iterator[World]:
    url = begin_sqlite(tmp_path / "state.db")
    with Store.open(
        url, clock=clock, lease_seconds=LEASE.total_seconds(), data_root=str(tmp_path)
    ) as store:
        store.iceberg.enable(CATALOGUE)
        world = World(session, tmp_path, store, clock, beginnings=beginnings)
        yield world
        names_followed(world)
