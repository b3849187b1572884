"""Pointers: where an environment reads each model, itself or through the one that it follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.snapshots.environment import Layer, Pointer
from backfill_assets.state.tables import ENVIRONMENTS, POINTERS, VERSIONS
from backfill_assets.state.versions import NewVersion, ensure_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


def pointer(connection: sa.Connection, environment: str, model: str) -> Pointer | None:
    """Read where an environment reads a model."""
    return _resolved(connection, environment, POINTERS.c.model == model).get(model)


def pointers(connection: sa.Connection, environment: str) -> dict[str, Pointer]:
    """Read where an environment reads every model, by model."""
    return _resolved(connection, environment, sa.true())


def own_pointers(connection: sa.Connection, environment: str) -> dict[str, Pointer]:
    """Read the pointers that are an environment's own, by model, as they are stored."""
    return _stored(connection, [environment], sa.true())[environment]


def all_pointers(connection: sa.Connection) -> list[Pointer]:
    """Read every pointer of every environment, as it is stored."""
    return [Pointer(*row) for row in connection.execute(_selected())]


def followed(connection: sa.Connection, environment: str) -> tuple[str, ...]:
    """Name an environment, the one that it follows, and so on; one that is not there stands alone."""
    rows = connection.execute(sa.select(ENVIRONMENTS.c.name, ENVIRONMENTS.c.follows))
    follows = {row.name: row.follows for row in rows}
    names = [environment]
    while (found := follows.get(names[-1])) is not None and found not in names:
        names.append(found)
    return tuple(names)


def ensure_pointer(
    connection: sa.Connection, wanted: Pointer, place: str, now: datetime
) -> Pointer:
    """Create a model's first pointer and its version; what is there already stays.

    Returns:
        The pointer as it is now: not always the one that was wanted.

    Raises:
        VersionCollectingError: it is being deleted.
    """
    found = pointer(connection, wanted.environment, wanted.model)
    new = NewVersion(wanted.version, wanted.model, place, wanted.environment)
    if found is None:
        ensure_version(connection, new)
        put_pointer(connection, wanted, now)
        return wanted
    if found.version == wanted.version:
        ensure_version(connection, new)
    return found


def put_pointer(connection: sa.Connection, wanted: Pointer, now: datetime) -> None:
    """Let an environment read a model here, wherever it read it before."""
    remove_pointer(connection, wanted.environment, wanted.model, now)
    values = {column: getattr(wanted, column) for column in Pointer.__dataclass_fields__}
    connection.execute(sa.insert(POINTERS).values(**values, moved_at=now))


def remove_pointer(connection: sa.Connection, environment: str, model: str, now: datetime) -> None:
    """Forget an environment's own pointer of a model."""
    _leave(connection, _key(environment, model), now)


def remove_pointers(connection: sa.Connection, environment: str, now: datetime) -> None:
    """Forget every pointer that is an environment's own."""
    _leave(connection, POINTERS.c.environment == environment, now)


def _leave(connection: sa.Connection, where: sa.ColumnElement[bool], now: datetime) -> None:
    """Forget pointers, and note when their tables were left: readers may still be at them."""
    left = [Pointer(*row) for row in connection.execute(_selected().where(where))]
    names = {name for one in left for name in (one.version, *(each.version for each in one.under))}
    noted = sa.update(VERSIONS).where(VERSIONS.c.version.in_(sorted(names)))
    connection.execute(noted.values(left_at=now))
    connection.execute(sa.delete(POINTERS).where(where))


def repoint_metadata(
    connection: sa.Connection, environment: str, model: str, fingerprint: str, now: datetime
) -> None:
    """Run another snapshot of the same version from now on: only its metadata differs."""
    moved = sa.update(POINTERS).where(_key(environment, model))
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


def follow_head(
    connection: sa.Connection, version: str, before: int, delta_version: int, now: datetime
) -> None:
    """Let those that read a version at what was its head read it at this one, with the same rows."""
    there = sa.update(POINTERS).where(
        POINTERS.c.version == version, POINTERS.c.delta_version == before
    )
    connection.execute(there.values(delta_version=delta_version, moved_at=now))


def keep_live_pin(connection: sa.Connection, left: Pointer, now: datetime) -> None:
    """Let others that read a table under their own keep its pin, when its environment leaves it."""
    for each in all_pointers(connection):
        under = tuple(_not_below(layer, left) for layer in each.under)
        if each.environment != left.environment and under != each.under:
            put_pointer(connection, replace(each, under=under), now)


def _not_below(layer: Layer, left: Pointer) -> Layer:
    if layer.version != left.version or layer.delta_version >= left.delta_version:
        return layer
    return Layer(layer.version, left.delta_version)


def _resolved(
    connection: sa.Connection, environment: str, where: sa.ColumnElement[bool]
) -> dict[str, Pointer]:
    names = followed(connection, environment)
    stored = _stored(connection, names, where)
    found: dict[str, Pointer] = {}
    for at, name in enumerate(names):
        for model, each in stored[name].items():
            if model not in found:
                below = [stored[other].get(model) for other in names[at + 1 :]]
                found[model] = _live(each, [one for one in below if one is not None])
    return dict(sorted(found.items()))


def _live(own: Pointer, below: Sequence[Pointer]) -> Pointer:
    """Take the pins of the tables underneath from those who read them now."""
    if not own.under:
        return own
    pins = {one.version: one.delta_version for one in reversed(below)}
    return replace(own, under=tuple(_raised(layer, pins) for layer in own.under))


def _raised(layer: Layer, pins: Mapping[str, int]) -> Layer:
    pin = max(layer.delta_version, pins.get(layer.version, layer.delta_version))
    return Layer(layer.version, pin)


def _stored(
    connection: sa.Connection, environments: Sequence[str], where: sa.ColumnElement[bool]
) -> dict[str, dict[str, Pointer]]:
    wanted = _selected().where(POINTERS.c.environment.in_(environments), where)
    found: dict[str, dict[str, Pointer]] = {name: {} for name in environments}
    for row in connection.execute(wanted.order_by(POINTERS.c.model)):
        found[row.environment][row.model] = Pointer(*row)
    return found


def _selected() -> sa.Select[Any]:
    return sa.select(*(POINTERS.c[name] for name in Pointer.__dataclass_fields__))


def _key(environment: str, model: str) -> sa.ColumnElement[bool]:
    return sa.and_(POINTERS.c.environment == environment, POINTERS.c.model == model)
