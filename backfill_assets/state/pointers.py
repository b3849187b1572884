"""Pointers and the versions they point at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.state.tables import POINTERS, VERSIONS

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


class PathMovedError(BackfillAssetsError):
    """A version's table is asked for at another path than the one where it lies."""

    def __init__(self, version: str, known: str, asked: str) -> None:
        self.version, self.known, self.asked = version, known, asked
        super().__init__(
            f"the table of version '{version}' lies at {known}, but the settings say {asked}. "
            "Set the data folder back, or start with another state database"
        )


def pointer(connection: sa.Connection, environment: str, model: str) -> Pointer | None:
    """Read where an environment reads a model."""
    row = connection.execute(_selected(environment).where(POINTERS.c.model == model)).first()
    return None if row is None else Pointer(*row)


def pointers(connection: sa.Connection, environment: str) -> dict[str, Pointer]:
    """Read all pointers of an environment, by model."""
    rows = connection.execute(_selected(environment).order_by(POINTERS.c.model)).all()
    return {row.model: Pointer(*row) for row in rows}


def ensure_pointer(connection: sa.Connection, wanted: Pointer, path: str, now: datetime) -> Pointer:
    """Create a model's first pointer and its version; what is there already stays.

    Returns:
        The pointer as it is now: not always the one that was wanted.

    Raises:
        PathMovedError: the version's table lies elsewhere.
    """
    found = pointer(connection, wanted.environment, wanted.model)
    if found is None:
        ensure_version(connection, wanted.version, wanted.model, path)
        values = {column: getattr(wanted, column) for column in Pointer.__dataclass_fields__}
        connection.execute(sa.insert(POINTERS).values(**values, moved_at=now))
        return wanted
    if found.version == wanted.version:
        ensure_version(connection, wanted.version, wanted.model, path)
    return found


def ensure_version(connection: sa.Connection, version: str, model: str, path: str) -> None:
    """Create a version that has no commit yet, if it is not there."""
    row = _version(connection, version)
    if row is None:
        values = {"version": version, "model": model, "path": path, "known_head": NO_COMMIT}
        connection.execute(sa.insert(VERSIONS).values(values))
    elif row.path != path:
        raise PathMovedError(version, row.path, path)


def version_path(connection: sa.Connection, version: str) -> str:
    """Read where a version's table lies.

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).path


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


def repoint_metadata(
    connection: sa.Connection, environment: str, model: str, fingerprint: str, now: datetime
) -> None:
    """Run another snapshot of the same version from now on: only its metadata differs."""
    moved = sa.update(POINTERS).where(
        POINTERS.c.environment == environment, POINTERS.c.model == model
    )
    connection.execute(moved.values(fingerprint=fingerprint, moved_at=now))


def raise_pin(
    connection: sa.Connection, environment: str, version: str, delta_version: int, now: datetime
) -> None:
    """Let an environment read a version up to this delta_version; pins of a version only go up."""
    raised = sa.update(POINTERS).where(
        POINTERS.c.environment == environment,
        POINTERS.c.version == version,
        POINTERS.c.delta_version < delta_version,
    )
    connection.execute(raised.values(delta_version=delta_version, moved_at=now))


def _selected(environment: str) -> sa.Select[Any]:
    columns = [POINTERS.c[name] for name in Pointer.__dataclass_fields__]
    return sa.select(*columns).where(POINTERS.c.environment == environment)


def _version(connection: sa.Connection, version: str) -> sa.Row[Any] | None:
    return connection.execute(sa.select(VERSIONS).where(VERSIONS.c.version == version)).first()


def _known_version(connection: sa.Connection, version: str) -> sa.Row[Any]:
    row = _version(connection, version)
    if row is None:
        raise UnknownVersionError(version)
    return row
