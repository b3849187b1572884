"""Write values (dataclasses, enums, instants, tuples, mappings) as JSON text and read them back.

Only classes that a registry names can be read back, so stored text can't name other code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


ADDED_LATER: Mapping[str, bool] = MappingProxyType({"added later": True})
"""Marks, as metadata of a dataclass field, one that a later release added: it is written only where it
differs from its default, so that every other value keeps the text, and the hash, that it had before."""


def dumps(value: object) -> str:
    """Write a value as canonical JSON: equal values give equal text.

    Raises:
        TypeError: something in it is of a type that is never stored.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def loads(text: str, types: Iterable[type]) -> Any:  # noqa: ANN401 - the caller knows the type
    """Read a value written by `dumps`.

    Args:
        text: the JSON.
        types: every dataclass and enum that may occur in it.

    Raises:
        RequestError: the text names another type.
    """
    return _read(text, types, _maker)


def restored(text: str, types: Iterable[type]) -> Any:  # noqa: ANN401 - the caller knows the type
    """Read a value that `dumps` of the same release wrote, without checking it again.

    The checks that a class makes on creation were made before the value was written.

    Args:
        text: the JSON.
        types: every dataclass and enum that may occur in it.

    Raises:
        RequestError: the text names another type.
    """
    return _read(text, types, _restorer)


def _read(text: str, types: Iterable[type], maker: Callable[[type], Callable[[Any], Any]]) -> Any:  # noqa: ANN401 - the caller knows the type
    return _value(json.loads(text), _makers(tuple(types), maker))


@cache
def _makers(
    types: tuple[type, ...], maker: Callable[[type], Callable[[Any], Any]]
) -> Mapping[str, Callable[[Any], Any]]:
    """Say how each name in stored text becomes a value; thousands of cells are read by one table."""
    return {**_PLAIN_TYPES, **{type_.__name__: maker(type_) for type_ in types}}


def _plain(value: Any) -> Any:  # noqa: ANN401
    match value:
        case Enum():
            plain = _tagged(value, value.value)
        case None | bool() | int() | float() | str():
            plain = value
        case datetime():
            instant = value.astimezone(UTC) if value.tzinfo else value  # equal ones, equal text
            plain = {"@": "datetime", "v": instant.isoformat()}
        case Decimal():
            plain = {"@": "decimal", "v": str(value)}
        case tuple() | list():
            plain = [_plain(item) for item in cast("list[Any]", value)]
        case Mapping():
            items = cast("Mapping[str, Any]", value).items()
            plain = {"@": "map", "v": {key: _plain(item) for key, item in items}}
        case _ if is_dataclass(value):
            values = {field.name: getattr(value, field.name) for field in fields(value)}
            left_out = [name for name, default in _later(type(value)) if values[name] == default]
            plain = _tagged(
                value, {name: _plain(item) for name, item in values.items() if name not in left_out}
            )
        case _:
            message = f"can't store a {type(value).__name__}"
            raise TypeError(message)
    return plain


@cache
def _later(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    """Give the fields of a dataclass that a later release added, with their defaults."""
    return tuple(
        (field.name, field.default) for field in fields(kind) if "added later" in field.metadata
    )


def _tagged(value: object, plain: object) -> dict[str, object]:
    return {"@": type(value).__name__, "v": plain}


def _value(plain: Any, makers: Mapping[str, Callable[[Any], Any]]) -> Any:  # noqa: ANN401
    match plain:
        case list():
            return tuple(_value(item, makers) for item in cast("list[Any]", plain))
        case {"@": str(name), "v": inner}:
            if name not in makers:
                raise RequestError(
                    found=f"stored value of type '{name}' is not known to this release",
                    do="it was written by a newer one, upgrade backfill_assets",
                )
            return makers[name](_untagged(inner, makers))
        case _:
            return plain


def _untagged(inner: Any, makers: Mapping[str, Callable[[Any], Any]]) -> Any:  # noqa: ANN401
    if not isinstance(inner, dict):
        return inner
    items = cast("dict[str, Any]", inner).items()  # names of fields, or an author's own words
    return {key: _value(item, makers) for key, item in items}


def _maker(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, Enum):
        return kind
    return lambda stored: kind(**stored)


def _restorer(kind: type[Any]) -> Callable[[Any], Any]:
    if issubclass(kind, Enum):
        return kind

    defaults = dict(_later(kind))

    def restore(stored: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a value of that class
        value: Any = object.__new__(kind)
        for name, item in {**defaults, **stored}.items():
            object.__setattr__(value, name, item)
        return value

    return restore


_PLAIN_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "decimal": Decimal,
    "map": dict,
}
