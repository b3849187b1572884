"""The counter: one ever-growing number, which orders all that the state records."""

from __future__ import annotations

import sqlalchemy as sa

from backfill_assets.state.tables import COUNTER


def next_number(connection: sa.Connection) -> int:
    """Draw the next number; no other is drawn until this transaction ends."""
    drawn = sa.update(COUNTER).values(value=COUNTER.c.value + 1).returning(COUNTER.c.value)
    return connection.execute(drawn).scalar_one()


def last_number(connection: sa.Connection) -> int:
    """Read the number that was drawn last."""
    return connection.execute(sa.select(COUNTER.c.value)).scalar_one()


def rise_to(connection: sa.Connection, value: int) -> None:
    """Raise the counter to a number that a log names, if it is behind."""
    behind = sa.update(COUNTER).where(COUNTER.c.value < value)
    connection.execute(behind.values(value=value))


def set_number(connection: sa.Connection, value: int) -> None:
    """Set the counter after a rebuild, which numbers everything anew."""
    connection.execute(sa.update(COUNTER).values(value=value))
