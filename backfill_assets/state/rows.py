"""Rows of the state's tables, and the values of the core that they keep.

A field and its column have one name, and a column's type writes and reads what the field holds; what differs
is given beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Value(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


V = TypeVar("V", bound=_Value)


def values_of(value: _Value, *names: str, without: str = "") -> dict[str, Any]:
    """Write the fields of a value as the values of columns: all but one, or those that are named."""
    fields = names or value.__dataclass_fields__
    return {name: getattr(value, name) for name in fields if name != without}


def read_as(kind: type[V], row: sa.Row[Any], /, **others: object) -> V:
    """Read a value from a row: each field from the column of its name, if it is not given."""
    fields = kind.__dataclass_fields__
    return kind(**{name: getattr(row, name) for name in fields if name not in others}, **others)


def insert_all(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, if there are any."""
    if rows:
        connection.execute(sa.insert(table), rows)


def next_of(connection: sa.Connection, column: sa.Column[Any], *own: sa.ColumnElement[bool]) -> int:
    """Give the number after the largest of a column, in the selected rows; 1 for the first."""
    last = sa.select(sa.func.coalesce(sa.func.max(column), 0)).where(*own)
    return connection.execute(last).scalar_one() + 1
