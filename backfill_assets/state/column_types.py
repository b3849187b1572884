"""Column types of the state beside numbers: texts, instants, choices, and values of the core."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval import EPOCH, in_utc
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.content import ChangedAt, Content
from backfill_assets.snapshots.environment import Layer, Pointer
from backfill_assets.snapshots.ready import InputPin

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

_MICROSECOND = timedelta(microseconds=1)
_STORED = (Content, ChangedAt, InputPin, IntervalSet, Layer, Pointer)


class Text(sa.TypeDecorator[str]):
    """A text, as every database can keep it.

    Messages of Spark quote values, and PostgreSQL keeps no NUL character: one is kept as its picture, ␀. Half
    a surrogate pair, which no encoding has, is kept as its escape.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Write what can be kept."""
        del dialect
        return None if value is None else _storable(value)


def _storable(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "␀")
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class Instant(sa.TypeDecorator[datetime]):
    """An aware instant, kept as epoch microseconds."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Write microseconds."""
        del dialect
        return None if value is None else (in_utc(value) - EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """Read an instant in UTC."""
        del dialect
        return None if value is None else EPOCH + value * _MICROSECOND


class Choice(sa.TypeDecorator[StrEnum]):
    """One of an enumeration, kept as its text."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: StrEnum | None, dialect: Dialect) -> str | None:
        """Write its text."""
        del dialect
        return None if value is None else value.value

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        """Read it back."""
        del dialect
        return None if value is None else self.kind(value)


class Value(sa.TypeDecorator[Any]):
    """A value of the core, kept as canonical JSON: equal values are equal text."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:
        """Write JSON."""
        del dialect
        return _storable(dumps(value))  # JSON escapes NUL itself, and an escape of ours is JSON's

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """Read the value back."""
        del dialect
        return None if value is None else _read(value)


@lru_cache(maxsize=256)
def _read(text: str) -> object:
    """Read a value; neighbouring cells often hold the same one, and no caller changes it."""
    return loads(text, _STORED)
