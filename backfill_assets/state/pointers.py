"""Pointers: where an environment reads each model, by its own pointer or one that it follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.snapshots.environment import Layer, Pointer, plan_of
from backfill_assets.state import moves
from backfill_assets.state.rows import values_of
from backfill_assets.state.tables import CLAIMS, ENVIRONMENTS, POINTERS, READY_RECORDS, VERSIONS
from backfill_assets.state.versions import NO_COMMIT, NewVersion, ensure_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

# Each look at a state runs these several times, and to build a statement takes longer than to run it.
_FOLLOWS = sa.select(ENVIRONMENTS.c.name, ENVIRONMENTS.c.follows)
_POINTERS: sa.Select[Any] = sa.select(*(POINTERS.c[name] for name in Pointer.__dataclass_fields__))
_OF_ENVIRONMENTS = _POINTERS.where(
    POINTERS.c.environment.in_(sa.bindparam("environments"))
).order_by(POINTERS.c.model)


def pointer(connection: sa.Connection, environment: str, model: str) -> Pointer | None:
    """Read where an environment reads a model."""
    names = followed(connection, environment)
    return resolved_pointers(connection, names, POINTERS.c.model == model).get(model)


def pointers(connection: sa.Connection, environment: str) -> dict[str, Pointer]:
    """Read where an environment reads every model, by model."""
    return resolved_pointers(connection, followed(connection, environment))


def resolved_pointers(
    connection: sa.Connection, names: Sequence[str], where: sa.ColumnElement[bool] | None = None
) -> dict[str, Pointer]:
    """Read where models are read, by model.

    Args:
        connection: to the state.
        names: of the environment, of the one that it follows, and so on.
        where: which pointers; None for every one.
    """
    stored = _stored(connection, names, where)
    resolved: dict[str, Pointer] = {}
    for at, name in enumerate(names):
        for model, each in stored[name].items():
            if model not in resolved:
                below = [stored[other].get(model) for other in names[at + 1 :]]
                resolved[model] = _live(each, [lower for lower in below if lower is not None])
    return dict(sorted(resolved.items()))


def as_read(connection: sa.Connection, own: Pointer) -> Pointer:
    """Give an environment's own pointer with the pins at which the tables under its own are read now."""
    if not own.under:
        return own
    above = followed(connection, own.environment)[1:]
    stored = _stored(connection, above, POINTERS.c.model == own.model)
    return _live(own, [stored[name][own.model] for name in above if own.model in stored[name]])


def own_pointers(connection: sa.Connection, environment: str) -> dict[str, Pointer]:
    """Read the pointers that are an environment's own, by model, as they are stored."""
    return _stored(connection, [environment])[environment]


def all_pointers(connection: sa.Connection) -> list[Pointer]:
    """Read every pointer of every environment, as it is stored."""
    return [Pointer(*row) for row in connection.execute(_POINTERS)]


def followed(connection: sa.Connection, environment: str) -> tuple[str, ...]:
    """Name an environment, the one that it follows, and so on; an unknown one follows none."""
    follows = {row.name: row.follows for row in connection.execute(_FOLLOWS)}
    names = [environment]
    while (parent := follows.get(names[-1])) is not None and parent not in names:
        names.append(parent)
    return tuple(names)


def first_pointer(connection: sa.Connection, wanted: Pointer, place: str, now: datetime) -> None:
    """Create a model's pointer in an environment that has none, and its version at `place`.

    Raises:
        VersionCollectingError: it is being deleted.
    """
    new = NewVersion(wanted.version, wanted.model, place, wanted.environment)
    ensure_version(connection, new)
    put_pointer(connection, wanted, now)


def ensure_pointer(
    connection: sa.Connection, wanted: Pointer, place: str, now: datetime, lease: timedelta
) -> Pointer:
    """Create a model's first pointer and its version; what is there already stays.

    A pointer that was never filled is as good as none: the new one takes its place.

    Returns:
        The pointer as it is now: not always the one that was wanted.

    Raises:
        VersionCollectingError: its table is being deleted.
    """
    current = pointer(connection, wanted.environment, wanted.model)
    if current is None or wanted.model in never_filled(connection, wanted.environment, now - lease):
        first_pointer(connection, wanted, place, now)
        return wanted
    if current.version == wanted.version:
        new = NewVersion(wanted.version, wanted.model, place, wanted.environment)
        ensure_version(connection, new)
    return current


def never_filled(
    connection: sa.Connection, environment: str, heard_after: datetime
) -> frozenset[str]:
    """Name the models whose pointer in an environment was never of use.

    No cell of the table was ever published, no batch is at work on it, no plan moved the pointer, and no
    other environment has a table of the model.

    Args:
        connection: to the state.
        environment: its name; the pointers are its own.
        heard_after: a batch that was heard since then is at work.
    """
    stored = all_pointers(connection)
    elsewhere = {each.model for each in stored if each.environment != environment}
    first = {
        each.model: each.version
        for each in stored
        if each.environment == environment
        and each.delta_version == NO_COMMIT
        and each.model not in elsewhere
    }
    if not first:
        return frozenset()
    records = sa.select(READY_RECORDS.c.version)
    at_work = sa.select(CLAIMS.c.version).where(CLAIMS.c.heartbeat_at > heard_after)
    of = sa.union(
        records.where(READY_RECORDS.c.version.in_([*first.values()])),
        at_work.where(CLAIMS.c.version.in_([*first.values()])),
    )
    used = {*connection.execute(of).scalars()}
    moved = moves.models_moved_in(connection, environment)
    return frozenset(name for name, at in first.items() if at not in used and name not in moved)


def put_pointer(connection: sa.Connection, wanted: Pointer, now: datetime) -> None:
    """Point an environment at a model's table, wherever it read the model before."""
    remove_pointer(connection, wanted.environment, wanted.model, now)
    connection.execute(sa.insert(POINTERS).values({**values_of(wanted), "moved_at": now}))


def remove_pointer(connection: sa.Connection, environment: str, model: str, now: datetime) -> None:
    """Forget an environment's own pointer of a model."""
    own = sa.and_(POINTERS.c.environment == environment, POINTERS.c.model == model)
    _remove_where(connection, own, now)


def remove_pointers(connection: sa.Connection, environment: str, now: datetime) -> None:
    """Forget every pointer that is an environment's own."""
    _remove_where(connection, POINTERS.c.environment == environment, now)


def _remove_where(connection: sa.Connection, where: sa.ColumnElement[bool], now: datetime) -> None:
    """Remove pointers, and note when their tables were left: readers may still use them."""
    old_pointers = [Pointer(*row) for row in connection.execute(_POINTERS.where(where))]
    names = {layer.version for old in old_pointers for layer in old.layers}
    noted = sa.update(VERSIONS).where(VERSIONS.c.version.in_(sorted(names)))
    connection.execute(noted.values(left_at=now))
    connection.execute(sa.delete(POINTERS).where(where))


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
    """Move pointers from a version's former head to a new one, which holds the same rows."""
    update = sa.update(POINTERS).where(
        POINTERS.c.version == version, POINTERS.c.delta_version == before
    )
    connection.execute(update.values(delta_version=delta_version, moved_at=now))


def keep_live_pin(connection: sa.Connection, left: Pointer, now: datetime) -> None:
    """Keep a table's pin in others' layers, when the environment that raised it leaves the table."""
    for each in all_pointers(connection):
        under = tuple(_not_below(layer, left) for layer in each.under)
        if each.environment != left.environment and under != each.under:
            put_pointer(connection, replace(each, under=under), now)


def follow_again(connection: sa.Connection, moved: Pointer, now: datetime) -> None:
    """Let environments read a model where they follow it again, if that is the table and definition of their own pointer.

    The table has another owner by now, whose commits their own pointer would never follow.
    """
    rows = connection.execute(_POINTERS.where(POINTERS.c.model == moved.model)).all()
    for each in (Pointer(*row) for row in rows):
        if plan_of(each.environment) is not None:
            continue  # what a plan's workspace reads is the plan's to say
        above = followed(connection, each.environment)[1:]
        if moved.environment in above:
            at = resolved_pointers(connection, above, POINTERS.c.model == each.model)[each.model]
            if at.is_as(each):
                remove_pointer(connection, each.environment, each.model, now)


def _not_below(layer: Layer, left: Pointer) -> Layer:
    if layer.version != left.version or layer.delta_version >= left.delta_version:
        return layer
    return Layer(layer.version, left.delta_version)


def _live(own: Pointer, below: Sequence[Pointer]) -> Pointer:
    """Raise the pins of the lower layers to those of the environments that read them now."""
    if not own.under:
        return own
    pins = {lower.version: lower.delta_version for lower in reversed(below)}
    return own.raised(pins)


def _stored(
    connection: sa.Connection,
    environments: Sequence[str],
    where: sa.ColumnElement[bool] | None = None,
) -> dict[str, dict[str, Pointer]]:
    query = _OF_ENVIRONMENTS if where is None else _OF_ENVIRONMENTS.where(where)
    stored: dict[str, dict[str, Pointer]] = {name: {} for name in environments}
    for row in connection.execute(query, {"environments": environments}):
        stored[row.environment][row.model] = Pointer(*row)
    return stored
