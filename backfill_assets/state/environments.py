"""Environments as the state keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.snapshots.environment import Environment
from backfill_assets.snapshots.publication import IntentStatus
from backfill_assets.state import pointers
from backfill_assets.state.tables import CUTOFFS, ENVIRONMENTS, OWED, PROMOTIONS

if TYPE_CHECKING:
    from datetime import datetime


class UnknownEnvironmentError(BackfillAssetsError):
    """No environment has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"environment '{name}' does not exist; there is {', '.join(known)}. Use one of them"
        )


def _environment_needed(name: str, why: str) -> RequestError:
    return RequestError(
        found=f"environment '{name}' can't be dropped: {why}. Only an unprotected environment that "
        "no other one follows can be",
        do="abandon or promote its open plans first",
    )


@dataclass(frozen=True, slots=True)
class Finalized:
    """What was last published in an environment.

    Attributes:
        at: when.
        plan_id: by which plan.
        removed: models that it does not run any more.
    """

    at: datetime
    plan_id: str
    removed: tuple[str, ...]


def environment(connection: sa.Connection, name: str) -> Environment:
    """Read an environment.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    found = find_environment(connection, name)
    if found is None:
        known = (each.name for each in environments(connection) if not each.is_workspace)
        raise UnknownEnvironmentError(name, tuple(known))
    return found


def find_environment(connection: sa.Connection, name: str) -> Environment | None:
    """Read an environment, or None."""
    row = connection.execute(sa.select(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name)).first()
    return None if row is None else _environment(row)


def environments(connection: sa.Connection) -> list[Environment]:
    """Read all environments, workspaces included, by name."""
    rows = connection.execute(sa.select(ENVIRONMENTS).order_by(ENVIRONMENTS.c.name))
    return [_environment(row) for row in rows]


def chain(connection: sa.Connection, name: str) -> tuple[Environment, ...]:
    """Read an environment, the one that it follows, and so on.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    links = [environment(connection, name)]
    seen = {name}
    while (followed := links[-1].follows) is not None and followed not in seen:
        links.append(environment(connection, followed))
        seen.add(followed)
    return tuple(links)


def finalized(connection: sa.Connection, name: str) -> Finalized | None:
    """Read what was last published in an environment; None for one where nothing was."""
    row = connection.execute(sa.select(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name)).first()
    if row is None or row.finalized_at is None:
        return None
    return Finalized(row.finalized_at, row.finalized_by, row.removed or ())


def save_environment(connection: sa.Connection, saved: Environment) -> None:
    """Create an environment, or change all that is said of it."""
    values = {name: getattr(saved, name) for name in Environment.__dataclass_fields__}
    changed = sa.update(ENVIRONMENTS).where(ENVIRONMENTS.c.name == saved.name).values(values)
    if connection.execute(changed).rowcount == 0:
        connection.execute(sa.insert(ENVIRONMENTS).values(values))


def touch_environment(connection: sa.Connection, name: str, expires_at: datetime | None) -> None:
    """Let an environment live until then.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    environment(connection, name)
    touched = sa.update(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name)
    connection.execute(touched.values(expires_at=expires_at))


def finalize(
    connection: sa.Connection, name: str, plan_id: str, removed: tuple[str, ...], now: datetime
) -> None:
    """Write that a plan was published here."""
    done = sa.update(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name)
    connection.execute(done.values(finalized_at=now, finalized_by=plan_id, removed=removed or None))


def drop_environment(connection: sa.Connection, name: str, now: datetime) -> None:
    """Forget an environment and its pointers.

    Raises:
        UnknownEnvironmentError: there is none of this name.
        RequestError: it is protected, another one follows it, or it is being published to.
    """
    if environment(connection, name).protected:
        raise _environment_needed(name, "it is protected")
    followers = [each.name for each in environments(connection) if each.follows == name]
    if followers:
        raise _environment_needed(name, f"{', '.join(followers)} follow it")
    busy = sa.select(PROMOTIONS.c.plan_id).where(
        PROMOTIONS.c.environment == name, PROMOTIONS.c.status == IntentStatus.OPEN.value
    )
    for plan_id in connection.execute(busy.limit(1)).scalars():
        raise _environment_needed(name, f"what was begun with plan {plan_id} is not finished")
    forget_environment(connection, name, now)


def forget_environment(connection: sa.Connection, name: str, now: datetime) -> None:
    """Remove an environment, its pointers, cutoffs and what it alone owes, whatever it is."""
    connection.execute(sa.delete(CUTOFFS).where(CUTOFFS.c.environment == name))
    connection.execute(sa.delete(OWED).where(OWED.c.environment == name))
    pointers.remove_pointers(connection, name, now)
    connection.execute(sa.delete(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name))


def _environment(row: sa.Row[Any]) -> Environment:
    return Environment(**{name: getattr(row, name) for name in Environment.__dataclass_fields__})
