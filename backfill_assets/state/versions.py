"""Versions: the physical tables, who alone writes each, and how far the state knows its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.state.tables import VERSIONS

if TYPE_CHECKING:
    from datetime import datetime

NO_COMMIT = -1
"""The pin, and the head, of a table that has no commit yet."""


class UnknownVersionError(BackfillAssetsError):
    """No table of this version is known."""

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(
            f"version '{version}' is not in the state; expected one that a pointer named before. "
            "Run the model once, or `backfill state rebuild`"
        )


class VersionCollectingError(BackfillAssetsError):
    """A version's table is being deleted."""

    def __init__(self, version: str, since: datetime) -> None:
        self.version = version
        super().__init__(
            f"the table of version '{version}' is being deleted since {since.isoformat()}: nothing "
            "may point there any more. Let `backfill gc` finish, then try again: it is built anew"
        )


def owned_elsewhere(version: str, owner: str, environment: str) -> RequestError:
    """Name the environment that alone writes the version."""
    return RequestError(
        found=f"version '{version}' belongs to '{owner}', which alone writes it; '{environment}' "
        "may only read it",
        do=f"Wait for '{owner}', or promote or abandon what holds it",
    )


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to be known from now on.

    Attributes:
        version: its id.
        model: of which model.
        path: the place where its table lies, or will (see `snapshots.places`).
        owner: who alone writes it.
        made_by: the plan that makes it; None for none.
    """

    version: str
    model: str
    path: str
    owner: str | None
    made_by: str | None = None


def ensure_version(connection: sa.Connection, wanted: NewVersion) -> None:
    """Create a version that has no commit yet, if it is not there; one that is stays as it is.

    Raises:
        VersionCollectingError: it is being deleted.
    """
    row = _version(connection, wanted.version)
    if row is None:
        values = {name: getattr(wanted, name) for name in NewVersion.__dataclass_fields__}
        connection.execute(sa.insert(VERSIONS).values(**values, known_head=NO_COMMIT))
    elif row.collecting_at is not None:
        raise VersionCollectingError(wanted.version, row.collecting_at)


def check_kept(connection: sa.Connection, version: str) -> None:
    """Make sure that a pointer may move to a version.

    Raises:
        UnknownVersionError: no such version.
        VersionCollectingError: it is being deleted.
    """
    row = _known_version(connection, version)
    if row.collecting_at is not None:
        raise VersionCollectingError(version, row.collecting_at)


def place(connection: sa.Connection, version: str) -> str:
    """Read the place where a version's table lies (see `snapshots.places`).

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).path


def owner(connection: sa.Connection, version: str) -> str | None:
    """Read which environment alone writes a version; None: whoever opens it next.

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).owner


def find_owner(connection: sa.Connection, version: str) -> str | None:
    """Read who alone writes a version; None when nobody does, or nobody knows of it."""
    row = _version(connection, version)
    return None if row is None else row.owner


def set_owner(connection: sa.Connection, version: str, environment: str) -> None:
    """Let an environment alone write a version."""
    owned = sa.update(VERSIONS).where(VERSIONS.c.version == version)
    connection.execute(owned.values(owner=environment))


def known_head(connection: sa.Connection, version: str) -> int:
    """Read the last delta_version that the state has accounted for.

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).known_head


def set_known_head(connection: sa.Connection, version: str, delta_version: int) -> None:
    """Account for a table's commits up to this one."""
    head = sa.update(VERSIONS).where(VERSIONS.c.version == version)
    connection.execute(head.values(known_head=delta_version))


def _version(connection: sa.Connection, version: str) -> sa.Row[Any] | None:
    return connection.execute(sa.select(VERSIONS).where(VERSIONS.c.version == version)).first()


def _known_version(connection: sa.Connection, version: str) -> sa.Row[Any]:
    row = _version(connection, version)
    if row is None:
        raise UnknownVersionError(version)
    return row
