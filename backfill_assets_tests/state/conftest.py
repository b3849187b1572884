"""Every contract of the state holds on SQLite and on PostgreSQL.

The tests start a PostgreSQL of their own; BACKFILL_TEST_PG_URL names another one, which they empty.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from backfill_assets.state.store import Store
from backfill_assets.state.tables import METADATA
from backfill_assets_tests.state.building import LEASE, Clock, add_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POSTGRES = os.environ.get("BACKFILL_TEST_PG_URL")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/state.db"
    found = POSTGRES or request.getfixturevalue("postgres").url()
    empty_postgres(found)
    return found


def empty_postgres(found: str) -> None:
    engine = sa.create_engine(sa.make_url(found).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        for view in ("iceberg_namespace_properties", "iceberg_tables"):
            connection.execute(sa.text(f"drop view if exists {view}"))
        METADATA.drop_all(connection)
        connection.execute(sa.text("drop table if exists alembic_version"))
    engine.dispose()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with Store.open(url, clock=clock, lease_seconds=LEASE) as opened:
        add_model(opened, "orders")
        yield opened


@pytest.fixture
def other(url: str, clock: Clock, store: Store) -> Iterator[Store]:
    """A second process would have a store of its own."""
    with Store.open(url, clock=clock, lease_seconds=LEASE) as opened:
        yield opened
