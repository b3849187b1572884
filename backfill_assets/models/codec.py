"""Write values (dataclasses, enums, instants, tuples, mappings) as JSON text and read them back.

Only classes that a registry names can be read back, so stored text can never name code of its own.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class UnknownStoredTypeError(BackfillAssetsError):
    """Stored text names a type that this release does not know."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"stored value of type '{name}' is not known to this release; it was written by a "
            "newer one, upgrade backfill_assets"
        )


def dumps(value: object) -> str:
    """Write a value as canonical JSON: equal values give equal text."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def loads(text: str, types: Iterable[type]) -> Any:  # noqa: ANN401 - the caller knows the type
    """Read a value written by `dumps`.

    Args:
        text: the JSON.
        types: every dataclass and enum that may occur in it.

    Raises:
        UnknownStoredTypeError: the text names another type.
    """
    return _value(json.loads(text), {one.__name__: one for one in types})


def _plain(value: Any) -> Any:  # noqa: ANN401
    match value:
        case datetime():
            return {"@": "datetime", "v": value.isoformat()}
        case Enum():
            return {"@": type(value).__name__, "v": value.value}
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return [_plain(one) for one in value]
        case dict():
            return {"@": "map", "v": {str(key): _plain(one) for key, one in value.items()}}
        case _ if is_dataclass(value):
            plain = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
            return {"@": type(value).__name__, "v": plain}
        case _:
            message = f"can't store a {type(value).__name__}"
            raise TypeError(message)


def _value(plain: Any, types: Mapping[str, type]) -> Any:  # noqa: ANN401
    if isinstance(plain, list):
        return tuple(_value(one, types) for one in plain)
    if not isinstance(plain, dict):
        return plain
    name, inner = plain["@"], plain["v"]
    if name == "datetime":
        return datetime.fromisoformat(inner)
    if name == "map":
        return {key: _value(one, types) for key, one in inner.items()}
    if name not in types:
        raise UnknownStoredTypeError(name)
    kind = types[name]
    if issubclass(kind, Enum):
        return kind(inner)
    return kind(**{key: _value(one, types) for key, one in inner.items()})
