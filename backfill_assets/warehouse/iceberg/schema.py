"""Iceberg's schema of a Delta table.

Data files hold no numbers of columns; readers take them from the names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType as IcebergMap,
    NestedField,
    StringType,
    StructType as IcebergStruct,
    TimestampType,
    TimestamptzType,
)

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.iceberg.field_ids import field_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalake import Field, Schema as DeltaSchema
    from pyiceberg.types import IcebergType

_PLAIN: dict[str, type[Any]] = {
    "string": StringType,
    "long": LongType,
    "integer": IntegerType,
    "short": IntegerType,
    "byte": IntegerType,
    "double": DoubleType,
    "float": FloatType,
    "boolean": BooleanType,
    "date": DateType,
    "timestamp": TimestamptzType,
    "timestamp_ntz": TimestampType,
    "binary": BinaryType,
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


class _NoSuchTypeError(Exception):
    """Iceberg has no type for a column's."""


def iceberg_schema(delta: DeltaSchema) -> Schema:
    """Give Iceberg's schema: every column but `_cell`, and but those of a type that Iceberg lacks."""
    return Schema(
        *_fields((field for field in delta.fields if field.name != CELL_COLUMN), ""), schema_id=0
    )


def _fields(fields: Iterable[Field], under: str) -> Iterator[NestedField]:
    taken: set[int] = set()
    for field in fields:
        path = f"{under}{field.name}"
        try:
            kind = _type(field.type, path)
        except _NoSuchTypeError:
            continue
        number = field_id(path)
        while number in taken:  # of two names with one number, the later one takes the next
            number += 1
        taken.add(number)
        yield NestedField(number, field.name, kind, required=False)


def _type(delta: object, path: str) -> IcebergType:
    match delta:
        case PrimitiveType():
            return _primitive(delta.type)
        case ArrayType():
            element = f"{path}.element"
            return ListType(
                element_id=field_id(element),
                element_type=_type(delta.element_type, element),
                element_required=False,
            )
        case MapType():
            key, value = f"{path}.key", f"{path}.value"
            return IcebergMap(
                key_id=field_id(key),
                key_type=_type(delta.key_type, key),
                value_id=field_id(value),
                value_type=_type(delta.value_type, value),
                value_required=False,
            )
        case StructType():
            return IcebergStruct(*_fields(delta.fields, f"{path}."))
        case _:
            raise _NoSuchTypeError


def _primitive(name: str) -> IcebergType:
    if decimal := _DECIMAL.fullmatch(name):
        return DecimalType(int(decimal[1]), int(decimal[2]))
    if name not in _PLAIN:
        raise _NoSuchTypeError
    return _PLAIN[name]()
