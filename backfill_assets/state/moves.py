"""Pointer moves: the history of what environments read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.publication import PointerMove
from backfill_assets.snapshots.stored_plan import PlanEventKind
from backfill_assets.state.rows import insert_all, read_as, values_of
from backfill_assets.state.tables import PLAN_EVENTS, POINTER_MOVES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

_MOVES = POINTER_MOVES.c
_DROPPED = sa.exists().where(
    PLAN_EVENTS.c.plan_id == _MOVES.plan_id, PLAN_EVENTS.c.event == PlanEventKind.DROPPED
)
"""Whether the environment of a move's plan has been dropped since."""


def save_moves(connection: sa.Connection, made: list[PointerMove]) -> None:
    """Add moves to the history."""
    insert_all(connection, POINTER_MOVES, [values_of(each) for each in made])


def moves_of(connection: sa.Connection, plan_id: str) -> list[PointerMove]:
    """Read the moves of a plan, the newest last."""
    return _read(connection, _MOVES.plan_id == plan_id)


def moves_of_model(connection: sa.Connection, model: str) -> list[PointerMove]:
    """Read the moves of a model in every environment, the newest last."""
    return _read(connection, _MOVES.model == model)


def moves_in(connection: sa.Connection, environment: str, after: int) -> list[PointerMove]:
    """Read an environment's moves after a number, the newest last; none of one that was dropped and had its name."""
    return _read(connection, sa.and_(_made_in(environment), _MOVES.number > after))


def models_moved_in(connection: sa.Connection, environment: str) -> frozenset[str]:
    """Name every model that was moved in an environment; none of one that was dropped and had its name."""
    named = sa.select(_MOVES.model).where(_made_in(environment)).distinct()
    return frozenset(connection.execute(named).scalars())


def plans_that_moved(connection: sa.Connection, environment: str) -> list[str]:
    """Name the plans that moved a pointer of an environment; none of one that was dropped and had its name."""
    named = sa.select(_MOVES.plan_id).where(_made_in(environment)).distinct()
    return [*connection.execute(named.order_by(_MOVES.plan_id)).scalars()]


def all_moves(connection: sa.Connection) -> list[PointerMove]:
    """Read every move, the newest last."""
    return _read(connection, sa.true())


def moves_to_keep(
    connection: sa.Connection, now: datetime, promise: timedelta
) -> list[PointerMove]:
    """Read every move whose way back is open, as was promised then or is promised now, the newest last.

    What a dropped environment had published has none.
    """
    is_promised = sa.or_(_MOVES.promised_until >= now, _MOVES.at >= now - promise)
    return _read(connection, sa.and_(is_promised, ~_DROPPED))


def moved_models(connection: sa.Connection, environments: Iterable[str]) -> frozenset[str]:
    """Name every model that was ever moved in one of these environments, or in a dropped one of their names."""
    named = sa.select(_MOVES.model).where(_MOVES.environment.in_([*environments])).distinct()
    return frozenset(connection.execute(named).scalars())


def _made_in(environment: str) -> sa.ColumnElement[bool]:
    return sa.and_(_MOVES.environment == environment, ~_DROPPED)


def _read(connection: sa.Connection, where: sa.ColumnElement[bool]) -> list[PointerMove]:
    query = sa.select(POINTER_MOVES).where(where).order_by(_MOVES.number, _MOVES.model)
    return [read_as(PointerMove, row) for row in connection.execute(query)]
