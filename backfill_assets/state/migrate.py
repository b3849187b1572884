"""Bring a database's tables up to this release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import RequestError
from backfill_assets.state.tables import COUNTER, METADATA

if TYPE_CHECKING:
    from alembic.config import Config

    from backfill_assets.state.database import Database

HEAD = "0026"
"""The newest migration: known here so that an up-to-date database opens without Alembic."""


def migrate(database: Database, data_root: str | None = None) -> None:
    """Apply every migration that the database lacks; safe when several processes open it at once.

    Args:
        database: of the state.
        data_root: folder or URI under which tables lie; None leaves their paths as they are.

    Raises:
        RequestError: a newer release has migrated it, or it is another program's.
        RequestError: it is new, and can't hold every text.
        RequestError: it names tables by absolute URIs that may be those of a copy.
    """
    if database.read(_revision) != HEAD:
        database.change_schema(lambda connection: _upgrade(connection, database.where, data_root))


def is_empty(database: Database) -> bool:
    """Whether no release has ever made its tables in a database."""
    return database.read(_revision) is None


def config(connection: sa.Connection, data_root: str | None = None) -> Config:
    """Configure Alembic for the migrations of this package, on a connection of ours."""
    from alembic.config import Config  # noqa: PLC0415 - 0.2 s that an up-to-date state is spared

    made = Config()
    folder = str(Path(__file__).parent / "migrations")
    made.set_main_option(
        "script_location", folder.replace("%", "%%")
    )  # it reads ConfigParser's %()
    made.set_main_option("path_separator", "os")
    made.attributes["connection"] = connection
    made.attributes["data_root"] = data_root
    return made


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("select version_num from alembic_version")).scalar()


def _refuse_others(connection: sa.Connection, where: str, revision: str | None) -> None:
    """Refuse to write among tables of another program; a newer release of ours has made a counter, too.

    Raises:
        RequestError: it is another program's database.
    """
    tables = {*sa.inspect(connection).get_table_names()}
    in_our_way = tables & METADATA.tables.keys()
    if in_our_way if revision is None else COUNTER.name not in tables:
        named = ", ".join(sorted(in_our_way or {"alembic_version"}))
        raise RequestError(
            found=f"the database {where} has tables of another program: {named}",
            expected="a database of its own for the state",
            do="name another one in BACKFILL_STATE_URL",
        )


def _refuse_other_encodings(connection: sa.Connection, where: str) -> None:
    """Refuse to begin a state that can't hold every text.

    Raises:
        RequestError: the database has another encoding than UTF-8.
    """
    if connection.dialect.name == "sqlite":
        return
    encoding = connection.execute(sa.text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise RequestError(
            found=f"the database {where} has the encoding {encoding}",
            expected="UTF8, for the state holds texts of any language",
            do="create it with `createdb --encoding=UTF8 --template=template0`",
        )


def _upgrade(connection: sa.Connection, where: str, data_root: str | None) -> None:
    from alembic import command  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    alembic = config(connection, data_root)
    revisions = {each.revision for each in ScriptDirectory.from_config(alembic).walk_revisions()}
    revision = _revision(connection)
    if revision not in revisions:
        _refuse_others(connection, where, revision)
    if revision is None:
        _refuse_other_encodings(connection, where)
    elif revision not in revisions:
        raise RequestError(
            found=f"the state database {where} is at schema '{revision}', this release knows up to "
            f"'{HEAD}': it was opened by a newer release",
            do="Upgrade backfill_assets",
        )
    try:
        command.upgrade(alembic, "head")
    except LookupError as error:
        if type(error) is not LookupError:  # a KeyError or an IndexError, which no migration raises
            raise
        raise RequestError(
            found=f"the state database {where} names tables in {error}, but the data folder is "
            f"{data_root or ''}: it is not known whether the tables were copied there",
            do="Run `backfill status` once with BACKFILL_DATA_DIR set to the folder that the state names; then use "
            "either",
        ) from error
