"""The Iceberg catalogue of the state: which metadata file describes a table at which delta_version.

Readers look names up in the views `iceberg_tables` and `iceberg_namespace_properties`, which have the
columns of Iceberg's own SQL catalogue. They join the entries with the pointers. So whatever moves
pointers moves names, in the same transaction, and nothing else can: a view takes no writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.environments import environments
from backfill_assets.state.pointers import own_pointers
from backfill_assets.state.tables import ICEBERG_CATALOG, ICEBERG_ENTRIES
from backfill_assets.state.versions import owner, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.state.database import Database

_AT = ICEBERG_ENTRIES.c
_NAMES = sa.text(
    "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables ORDER BY 1, 2"
)


class Named(NamedTuple):
    """A table that engines find by name.

    Attributes:
        name: the environment, the model's subject and its table, with dots between them.
        location: of its present metadata file.
    """

    name: str
    location: str


class Iceberg(Aggregate[D]):
    """The Iceberg catalogue. Each method is one transaction."""

    def catalogue(self) -> str | None:
        """Give the catalogue's name; None while there is none."""
        row = self._row(sa.select(ICEBERG_CATALOG.c.name))
        return None if row is None else row.name

    def enable(self: Iceberg[Database], name: str) -> None:
        """Create the catalogue under this name, in place of another one."""

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(ICEBERG_CATALOG))
            connection.execute(sa.insert(ICEBERG_CATALOG).values(name=name))

        self._database.write(work)

    def disable(self: Iceberg[Database]) -> None:
        """Remove the catalogue: its entries are deleted, and `gc` deletes the files."""

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(ICEBERG_CATALOG))
            connection.execute(sa.delete(ICEBERG_ENTRIES))

        self._database.write(work)

    def names(self) -> tuple[Named, ...]:
        """List all that can be read by name now."""
        rows = self._database.read(lambda connection: connection.execute(_NAMES).all())
        return tuple(
            Named(f"{row.table_namespace}.{row.table_name}", row.metadata_location) for row in rows
        )

    def entry(self, version: str, delta_version: int) -> str | None:
        """Give the metadata file of a table at a delta_version; None if there is none."""
        return self._database.read(entry, version, delta_version)

    def published(self, version: str) -> str | None:
        """Give the metadata file of a table where the environment that writes it reads it; None if there is none."""

        def work(connection: sa.Connection) -> str | None:
            environment = owner(connection, version)
            at = None if environment is None else own_pointers(connection, environment)
            known = [each for each in (at or {}).values() if each.version == version]
            return entry(connection, version, known[0].delta_version) if known else None

        return self._database.read(work)

    def newest_until(self, version: str, delta_version: int) -> str | None:
        """Give the metadata file of a table's newest delta_version, up to one, that has a file."""
        until = sa.and_(_AT.version == version, _AT.delta_version <= delta_version)
        query = sa.select(_AT.location).where(until)
        row = self._row(query.order_by(_AT.delta_version.desc()).limit(1))
        return None if row is None else row.location

    def entries(self, version: str) -> dict[int, str]:
        """Read all metadata files of a table, by delta_version."""
        query = sa.select(_AT.delta_version, _AT.location).where(_AT.version == version)
        return {row.delta_version: row.location for row in self._rows(query)}

    def enter(self: Iceberg[Database], version: str, delta_version: int, location: str) -> None:
        """Keep the metadata file of a table at a delta_version, in place of another one."""

        def work(connection: sa.Connection) -> None:
            same = sa.and_(_AT.version == version, _AT.delta_version == delta_version)
            connection.execute(sa.delete(ICEBERG_ENTRIES).where(same))
            values = {"version": version, "delta_version": delta_version, "location": location}
            connection.execute(sa.insert(ICEBERG_ENTRIES).values(values))

        self._database.write(work)

    def drop_before(self: Iceberg[Database], version: str, delta_version: int) -> None:
        """Forget the metadata files of a table's older delta_versions."""
        older = sa.and_(_AT.version == version, _AT.delta_version < delta_version)
        self._database.write(
            lambda connection: connection.execute(sa.delete(ICEBERG_ENTRIES).where(older))
        )

    def missing(self) -> tuple[Pointer, ...]:
        """Give the pointers that no name can follow: published, of one table, with no file that lies there.

        After the data folder was moved, every file lies elsewhere.
        """

        def work(connection: sa.Connection) -> tuple[Pointer, ...]:
            return tuple(at for at in _named(connection) if not self._is_entered(connection, at))

        return self._database.read(work)

    def _is_entered(self, connection: sa.Connection, at: Pointer) -> bool:
        location = entry(connection, at.version, at.delta_version)
        path = self.located(place(connection, at.version))
        return location is not None and location.removeprefix("file://").startswith(f"{path}/")


def entry(connection: sa.Connection, version: str, delta_version: int) -> str | None:
    """Read the metadata file of a table at a delta_version; None if there is none."""
    query = sa.select(_AT.location).where(
        _AT.version == version, _AT.delta_version == delta_version
    )
    return connection.execute(query).scalar()


def _named(connection: sa.Connection) -> Iterator[Pointer]:
    """Give the pointers that names follow; none while there is no catalogue."""
    if connection.execute(sa.select(ICEBERG_CATALOG)).first() is None:
        return
    for environment in environments(connection):
        if not environment.is_workspace:
            for at in own_pointers(connection, environment.name).values():
                if at.delta_version >= 0 and not at.under:
                    yield at
