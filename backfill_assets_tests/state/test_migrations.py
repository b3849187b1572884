from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from backfill_assets.state import migrate
from backfill_assets.state.store import Store
from backfill_assets.state.tables import METADATA
from backfill_assets_tests.state.building import Clock

if TYPE_CHECKING:
    from sqlalchemy import Connection


def test_migrations_from_empty_build_exactly_the_tables_of_the_page(store: Store):
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, METADATA))

    assert store._database.read(differences) == []


def test_keys_are_those_of_the_page(store: Store):
    def keys(connection: Connection) -> dict[str, list[str]]:
        found = sa.inspect(connection)
        return {
            name: found.get_pk_constraint(name)["constrained_columns"] for name in METADATA.tables
        }

    expected = {
        name: [each.name for each in table.primary_key] for name, table in METADATA.tables.items()
    }
    assert store._database.read(keys) == expected


def test_there_is_one_newest_migration_and_the_release_knows_it(store: Store):
    scripts = store._database.read(
        lambda connection: ScriptDirectory.from_config(migrate.config(connection)).get_heads()
    )
    assert scripts == [migrate.HEAD]


def test_a_state_of_a_newer_release_is_refused(store: Store, url: str):
    store._database.write(
        lambda connection: connection.execute(sa.text("update alembic_version set version_num='9'"))
    )
    with pytest.raises(migrate.StateTooNewError, match="Upgrade backfill_assets"):
        Store.open(url, clock=Clock())
