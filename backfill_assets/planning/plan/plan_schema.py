"""The JSON schema of a plan, made from the values themselves: `python -m backfill_assets.planning.plan.plan_schema`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin

from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import FORMAT_VERSION, Plan
from backfill_assets.planning.plan.plan_json import FORMAT, hints_of

_INSTANT = {"type": "string", "format": "date-time"}
_INTERVAL = {
    "type": "array",
    "items": _INSTANT,
    "minItems": 2,
    "maxItems": 2,
    "description": "[start, end), UTC",
}
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def plan_schema() -> dict[str, Any]:
    """Describe the JSON form of a plan (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    schema = _object(Plan, definitions)
    properties = {
        "format": {"const": FORMAT},
        "content_hash": {
            "type": "string",
            "description": "SHA-256 of all that the plan does; a plan with another one was edited.",
        },
        **schema["properties"],
    }
    properties["format_version"] = {"type": "integer", "maximum": FORMAT_VERSION, "minimum": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A plan of backfill_assets",
        **schema,
        "required": ["format", "content_hash", "format_version", *schema["required"]],
        "properties": properties,
        "$defs": dict(sorted(definitions.items())),
    }


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    described, hints = _described(kind), hints_of(kind)
    properties = {
        name: {**_of(hint, definitions), **_description(described.get(name))}
        for name, hint in hints.items()
    }
    required = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    return {
        "type": "object",
        "description": (getdoc(kind) or "").partition("\n")[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _description(text: str | None) -> dict[str, str]:
    return {"description": text} if text else {}


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - any annotation
    found = _simple(kind)
    if found is not None:
        return found
    if isinstance(kind, type) and is_dataclass(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        inner = next(one for one in arguments if one is not NoneType)
        return {"anyOf": [_of(inner, definitions), {"type": "null"}]}
    items = [argument for argument in arguments if argument is not Ellipsis]
    if get_origin(kind) is Sequence or Ellipsis in arguments:
        return {"type": "array", "items": _of(items[0], definitions)}
    return {
        "type": "array",
        "prefixItems": [_of(item, definitions) for item in items],
        "minItems": len(items),
        "maxItems": len(items),
    }


def _simple(kind: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if kind in (IntervalSet, Interval, datetime):
        every = {"type": "array", "items": _INTERVAL}
        return {IntervalSet: every, Interval: _INTERVAL, datetime: _INSTANT}[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    name = _PLAIN.get(cast("Any", kind)) if isinstance(kind, type) else None
    return None if name is None else {"type": name}


def _described(kind: type) -> dict[str, str]:
    """Read the attributes' descriptions from the docstring."""
    text = (getdoc(kind) or "").partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", text, re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in found}


if __name__ == "__main__":
    print(json.dumps(plan_schema(), indent=2))  # noqa: T201 - written to docs/plan.schema.json
