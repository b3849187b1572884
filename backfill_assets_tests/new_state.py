"""Begin the state of a test without its migrations, which take longer than most tests: from one that is migrated."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from backfill_assets.state.migrate import HEAD
from backfill_assets.state.store import Store
from backfill_assets.state.tables import METADATA
from backfill_assets_tests.state.building import Clock

_VIEWS = ("iceberg_namespace_properties", "iceberg_tables")


def begin_sqlite(path: Path) -> str:
    """Put a new state into a file where none is yet; give its URL."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_migrated())
        path.chmod(0o600)
    return f"sqlite:///{path}"


def begin_postgres(url: str) -> None:
    """Leave in a database what a new state holds, whatever a test before has left there."""
    engine = _engine(url)
    with engine.begin() as connection:
        current = sa.inspect(connection).has_table("alembic_version") and (
            connection.execute(sa.text("select version_num from alembic_version")).scalar() == HEAD
        )
        if current:
            for table in reversed(METADATA.sorted_tables):
                connection.execute(table.delete())
            for name, rows in _first_rows().items():
                connection.execute(METADATA.tables[name].insert(), rows)
    engine.dispose()
    if not current:
        empty_postgres(url)
        Store.open(url, clock=Clock()).close()


def empty_postgres(url: str) -> None:
    """Leave no table of a state in a database."""
    engine = _engine(url)
    with engine.begin() as connection:
        for view in _VIEWS:
            connection.execute(sa.text(f"drop view if exists {view}"))
        METADATA.drop_all(connection)
        connection.execute(sa.text("drop table if exists alembic_version"))
    engine.dispose()


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        Store.open(f"sqlite:///{path}", clock=Clock()).close()
        return path.read_bytes()


@cache
def _first_rows() -> dict[str, list[dict[str, Any]]]:
    """Read what the migrations write, by table."""
    with tempfile.TemporaryDirectory() as folder:
        engine = sa.create_engine(begin_sqlite(Path(folder) / "state.db"))
        with engine.connect() as connection:
            rows = {
                table.name: [dict(row) for row in connection.execute(table.select()).mappings()]
                for table in METADATA.sorted_tables
            }
        engine.dispose()
    return {name: each for name, each in rows.items() if each}


def _engine(url: str) -> sa.Engine:
    return sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
