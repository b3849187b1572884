"""Environments as the state keeps them."""

from __future__ import annotations

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.environment import Environment
from backfill_assets.state.tables import ENVIRONMENTS


class UnknownEnvironmentError(BackfillAssetsError):
    """No environment has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"environment '{name}' does not exist; there is {', '.join(known)}. Use one of them"
        )


def environment(connection: sa.Connection, name: str) -> Environment:
    """Read an environment.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    rows = connection.execute(sa.select(ENVIRONMENTS).order_by(ENVIRONMENTS.c.name)).all()
    for row in rows:
        if row.name == name:
            return Environment(row.name, row.protected)
    raise UnknownEnvironmentError(name, tuple(row.name for row in rows))


def save_environment(connection: sa.Connection, saved: Environment) -> None:
    """Create an environment, or change whether it is protected."""
    where = ENVIRONMENTS.c.name == saved.name
    changed = sa.update(ENVIRONMENTS).where(where).values(protected=saved.protected)
    if connection.execute(changed).rowcount == 0:
        values = {"name": saved.name, "protected": saved.protected}
        connection.execute(sa.insert(ENVIRONMENTS).values(values))
