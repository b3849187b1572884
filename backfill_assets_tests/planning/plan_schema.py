"""The JSON schema of a plan, made from the values themselves: `python -m backfill_assets_tests.planning.plan_schema`."""

from __future__ import annotations

import json
import re
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from backfill_assets.planning.plan.plan_json import FORMAT, adapter

if TYPE_CHECKING:
    from pydantic_core.core_schema import DataclassSchema, EnumSchema


def plan_schema() -> dict[str, Any]:
    """Describe the JSON form of a plan (JSON Schema, draft 2020-12)."""
    schema = adapter().json_schema(schema_generator=_FromDocstrings)
    marks = {
        "format": {"const": FORMAT},
        "content_hash": {
            "type": "string",
            "description": "SHA-256 of all that the plan does; a plan with another one was edited.",
        },
    }
    return {
        **schema,
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "A plan of backfill_assets",
        "required": [*marks, "format_version", *schema["required"]],
        "properties": {**marks, **schema["properties"]},
    }


class _FromDocstrings(GenerateJsonSchema):
    """Take the descriptions from the docstrings of the classes, and allow no further attributes."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - of any attribute
        return False

    def enum_schema(self, schema: EnumSchema) -> JsonSchemaValue:
        return {**super().enum_schema(schema), "description": _summary(schema["cls"])}

    def dataclass_schema(self, schema: DataclassSchema) -> JsonSchemaValue:
        written, described = super().dataclass_schema(schema), _described(schema["cls"])
        for name, attribute in written["properties"].items():
            attribute.update({"description": described[name]} if name in described else {})
        return {**written, "description": _summary(schema["cls"]), "additionalProperties": False}


def _summary(kind: type) -> str:
    return (getdoc(kind) or "").partition("\n")[0]


def _described(kind: type) -> dict[str, str]:
    """Read the attributes' descriptions from the docstring."""
    text = (getdoc(kind) or "").partition("Attributes:\n")[2]
    attributes = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", text, re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in attributes}


if __name__ == "__main__":
    print(json.dumps(plan_schema(), indent=2))  # noqa: T201 - written to docs/plan.schema.json
