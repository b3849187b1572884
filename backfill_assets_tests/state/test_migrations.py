from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import dumps
from backfill_assets.models.column import Column
from backfill_assets.models.content import ChangedAt, Content
from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.state import migrate
from backfill_assets.state.database import Database
from backfill_assets.state.store import Store
from backfill_assets.state.tables import METADATA
from backfill_assets_tests.builders import a_model
from backfill_assets_tests.state.building import Clock

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from backfill_assets_tests.postgres import Server


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


def test_a_state_of_a_newer_release_is_refused(store: Store, place: str):
    store._database.write(
        lambda connection: connection.execute(sa.text("update alembic_version set version_num='9'"))
    )
    with pytest.raises(RequestError, match="Upgrade backfill_assets"):
        Store.open(place, clock=Clock())


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("create table plans (number integer)", "plans"),
        ("create table alembic_version as select 'd4b1' as version_num", "alembic_version"),
    ],
)
def test_a_database_of_another_program_is_refused_and_left_alone(url: str, made: str, named: str):
    database = Database.open(url, busy_seconds=1)
    database.change_schema(lambda connection: connection.execute(sa.text(made)))

    with pytest.raises(
        RequestError, match=f"has tables of another program: {named}; .* of its own"
    ):
        Store.open(url, clock=Clock())

    tables = database.read(lambda connection: sa.inspect(connection).get_table_names())
    database.close()
    assert tables == [named]


def test_a_new_state_is_begun_in_utf_8_alone(postgres: Server):
    url = postgres.create("latin", "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")

    with pytest.raises(RequestError, match=r"has the encoding LATIN1; expected UTF8, .*createdb"):
        Store.open(url, clock=Clock())


def test_a_release_may_lie_in_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
):
    folder = tmp_path / "50%off"
    folder.mkdir()
    (folder / "migrations").symlink_to(Path(migrate.__file__).parent / "migrations")
    monkeypatch.setattr(migrate, "__file__", str(folder / "migrate.py"))

    with Store.open(url, clock=Clock()) as store:
        assert store.environments.get("prod").protected


def test_a_state_of_the_first_release_goes_on_with_all_that_it_held(url: str, clock: Clock):
    database = Database.open(url, busy_seconds=30)
    database.change_schema(lambda found: command.upgrade(migrate.config(found), "0001"))
    for statement in _HELD:
        database.write(lambda found, text=statement: found.execute(sa.text(text)))
    database.close()

    with Store.open(url, clock=clock) as store:
        assert store.environments.by_name() == [
            Environment("dev", protected=False), Environment("prod", protected=True),
        ]  # fmt: skip
        assert store.environments.pointers("prod") == {"m": Pointer("prod", "m", "p", "m__v1", 4)}
        assert store.versions.owner("m__v1") == "prod"
        assert store.versions.owner("n__v1") == "dev"
        assert store.versions.owner("old__v0") is None
        assert store.views.of("prod").owed == {"m": IntervalSet.of_pairs([(0, 86400)])}
        assert store.plans.latest() == []


_HELD = (
    "insert into environments values ('dev', false)",
    "insert into versions values ('m__v1', 'm', '/m', 4), ('n__v1', 'n', '/n', 2)",
    "insert into versions values ('old__v0', 'm', '/old', 4)",
    "insert into pointers values ('prod', 'm', 'p', 'm__v1', 4, 0)",
    "insert into pointers values ('dev', 'm', 'p', 'm__v1', 1, 0), ('dev', 'n', 'p', 'n__v1', 2, 0)",
    "insert into owed values ('m__v1', 0, 3, 86400, 'restated')",
)


def test_checksums_of_rounded_floats_are_marked_and_all_others_stay(url: str, clock: Clock):
    database = Database.open(url, busy_seconds=30)
    database.change_schema(lambda found: command.upgrade(migrate.config(found), "0003"))
    records = sa.table("ready_records", *(sa.column(name) for name in _RECORD))
    models = sa.table("snapshots", *(sa.column(name) for name in _SNAPSHOT))
    held = Content(2, 5, {"ds": 6, "rate": 7})

    def write(connection: Connection) -> None:
        for name, dtype in (("plain", "bigint"), ("floats", "array<double>")):
            model = a_model(
                columns=(Column("ds", "date"), Column("rate", dtype)), unique_key=["ds"]
            )
            saved = (name, "m", name, dumps(model), "", "", "", 0)
            connection.execute(sa.insert(models).values(dict(zip(_SNAPSHOT, saved, strict=True))))
        for name in ("plain", "floats", "unknown"):
            cell = (name, 0, 0, 3600, None, 1, name, "b1", dumps(held), dumps(ChangedAt(1, {})))
            connection.execute(sa.insert(records).values(dict(zip(_RECORD, cell, strict=True))))

    database.write(write)
    database.close()
    with Store.open(url, clock=clock) as store:
        found = {
            name: store.versions.ready_records(name, None)[0].content
            for name in ("plain", "floats", "unknown")
        }
    assert found["plain"] == held
    assert found["floats"] == Content(2, 5, {"ds": 6, "rate": "rounded:7:b1"})
    assert found["unknown"] == Content(
        2, "rounded:5:b1", {"ds": "rounded:6:b1", "rate": "rounded:7:b1"}
    )


_RECORD = (
    "version", "starts", "valid_from", "ends", "valid_to", "built_at", "fingerprint", "batch_id",
    "content", "changed_at",
)  # fmt: skip
_SNAPSHOT = (
    "fingerprint", "model", "version", "definition", "logic", "upstream", "metadata", "saved_at"
)  # fmt: skip
