"""Every contract of the state holds on SQLite and on PostgreSQL.

The tests start a PostgreSQL of their own; BACKFILL_TEST_PG_URL names another one, which they empty.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.state.store import Store
from backfill_assets_tests.new_state import begin_postgres, begin_sqlite, empty_postgres
from backfill_assets_tests.state.building import LEASE, Clock, add_model

if TYPE_CHECKING:
    from collections.abc import Iterator

POSTGRES = os.environ.get("BACKFILL_TEST_PG_URL")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of the test's database, which may hold what a test before has left there."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/state.db"
    return POSTGRES or request.getfixturevalue("postgres").url()


@pytest.fixture
def url(place: str) -> str:
    """The URL of a database without tables."""
    if not place.startswith("sqlite"):
        empty_postgres(place)
    return place


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(place: str, clock: Clock) -> Iterator[Store]:
    if place.startswith("sqlite"):
        begin_sqlite(Path(place.removeprefix("sqlite:///")))
    else:
        begin_postgres(place)
    with Store.open(place, clock=clock, lease_seconds=LEASE) as opened:
        add_model(opened, "orders")
        yield opened


@pytest.fixture
def other(place: str, clock: Clock, store: Store) -> Iterator[Store]:
    """A second process would have a store of its own."""
    with Store.open(place, clock=clock, lease_seconds=LEASE) as opened:
        yield opened
