"""Compute checksums of a cell's content that do not depend on the order of its rows.

They are exact, except that all NaNs count as one value, and -0.0 as 0.0. A column that declares a
tolerance has a second checksum, of the places of its values on a grid (`hash_within`). Each row's
64-bit hash is added up exactly. A sum counts duplicates (an exclusive-or would not), and each value is
hashed with its key and with a flag for NULL, so that no swap of values between rows or columns cancels
out. The sum of 64-bit hashes overflows a BIGINT, and DECIMAL(38) is slow to add, so the halves of each
hash are summed as BIGINTs; `joined` combines them into the exact sum.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from backfill_assets.models.column import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql.types import DataType, StructType

NO_SUM = "NaN"
"""The result of `exact_sum` where some value has no decimal, or their sum has too many digits."""

EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Decimal arithmetic in Python as `exact_sum` does it in Spark."""

_PLACES = 9
_TOO_LARGE = Decimal(10) ** 29
_HALF = 32
_GRID_BITS = 51


def key_hash(key: Sequence[str], schema: StructType) -> str:
    """Write Spark SQL for the hash of a row's grain key."""
    return f"xxhash64({', '.join(_flagged(quoted(name), schema[name].dataType) for name in key)})"


def value_hash(column: str, schema: StructType, key: str) -> str:
    """Write Spark SQL for the hash of one value with its row's key hash (a column name)."""
    return f"xxhash64({key}, {_flagged(quoted(column), schema[column].dataType)})"


def hash_within(column: str, schema: StructType, key: str, tolerance: float) -> str:
    """Write Spark SQL like `value_hash`, but for where a value lies on the grid of a tolerance.

    Two values with one hash differ by no more than the tolerance; two that are nearer may have two
    hashes, where a line of the grid lies between them. The grid is half the tolerance wide and its
    lines lie between its multiples, so that round numbers lie off the lines: a quotient of up to
    2^51 is rounded by at most a quarter, and rounding it to a whole number adds at most a half to
    each side, so a place on the grid spans at most 1.5 halves. A value that is larger, or
    is not finite, is hashed exactly.
    """
    dtype, value = schema[column].dataType, quoted(column)
    quotient = f"(CAST({value} AS DOUBLE) / CAST('{tolerance / 2!r}' AS DOUBLE))"
    on_grid = f"abs({quotient}) <= {2**_GRID_BITS}D"
    place = f"CASE WHEN {on_grid} THEN CAST(rint({quotient}) AS BIGINT) END"
    beyond = f"CASE WHEN {on_grid} THEN NULL ELSE {canonical(value, dtype)} END"
    return f"xxhash64({key}, isnull({value}), coalesce({on_grid}, FALSE), {place}, {beyond})"


def sums(hash_: str) -> tuple[str, str]:
    """Write Spark SQL aggregates whose results `joined` makes one exact sum of."""
    return (
        f"sum(shiftright({hash_}, {_HALF}))",
        f"sum({hash_} & {2**_HALF - 1}L)",
    )


def joined(high: int, low: int) -> int:
    """Put the exact sum of 64-bit hashes together from the sums of their halves."""
    return (high << _HALF) + low


def exact_sum(value: str, dtype: str) -> str:
    """Write Spark SQL that sums without rounding, as text; ``NaN`` where a value has no decimal.

    Money is decimal. Doubles, and numbers in texts, are taken to nine places, which a sum can be held
    against another with; one that is not a number, infinite or too large for that makes the whole sum
    ``NaN``, and so does a sum of more than 38 digits.
    """
    exact = value
    if dtype in ("float", "double") or dtype.startswith("string"):
        exact = f"TRY_CAST({value} AS DECIMAL(38,9))"
    elif not dtype.startswith("decimal"):
        exact = f"CAST({value} AS DECIMAL(38,0))"
    summed = f"try_sum({exact})"
    without = f"count({value}) > count({exact}) OR (count({exact}) > 0 AND {summed} IS NULL)"
    return f"IF({without}, '{NO_SUM}', CAST(coalesce({summed}, 0) AS STRING))"


def sum_of_doubles(counted: Iterable[tuple[float, int]]) -> Decimal | None:
    """Sum doubles as `exact_sum` does; None where it gives no sum.

    Args:
        counted: values, and how often each occurs.
    """
    total = Decimal(0).scaleb(-_PLACES)
    for value, times in counted:
        exact = Decimal(repr(value))
        if not exact.is_finite() or abs(exact) >= _TOO_LARGE:
            return None
        total = EXACT.add(total, EXACT.multiply(exact.quantize(total, context=EXACT), times))
    return total if abs(total) < _TOO_LARGE else None


def same_value(value: str, other: str, dtype: DataType) -> str:
    """Write Spark SQL that compares two expressions, NULLs included.

    Maps and variants, which Spark can't compare, are compared by their canonical form.
    """
    if _is_incomparable(dtype.jsonValue()):
        return f"{canonical(value, dtype)} <=> {canonical(other, dtype)}"
    return f"{value} <=> {other}"


def canonical(value: str, dtype: DataType, depth: int = 0) -> str:
    """Write Spark SQL for the canonical form of an expression: equal content, equal hash."""
    from pyspark.sql import types as T  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    match dtype:
        case T.DoubleType() | T.FloatType():
            form = _canonical_float(value, dtype.simpleString())
        case T.StructType():
            form = _canonical_struct(value, dtype, depth)
        case T.ArrayType():
            form = _canonical_array(value, dtype.elementType, depth)
        case T.MapType():
            form = _canonical_map(value, dtype, depth)
        case T.VariantType():
            # The text alone would make a date equal to a string, and a double to a decimal.
            form = f"struct(to_json({value}), schema_of_variant({value}))"
        case _:
            form = value
    return form


def _flagged(value: str, dtype: DataType, depth: int = 0) -> str:
    return f"isnull({value}), {canonical(value, dtype, depth)}"


def _canonical_float(value: str, dtype: str) -> str:
    """Every NaN is one, and -0.0 is 0.0; any other two values differ in their bits and here."""
    return (
        f"CASE WHEN isnan({value}) THEN CAST('NaN' AS {dtype}) "
        f"WHEN {value} = 0 THEN CAST(0 AS {dtype}) ELSE {value} END"
    )


def _canonical_struct(value: str, dtype: StructType, depth: int) -> str:
    parts = ", ".join(
        _flagged(f"{value}.{quoted(field.name)}", field.dataType, depth) for field in dtype.fields
    )
    return f"IF({value} IS NULL, NULL, struct({parts}))"


def _canonical_array(value: str, element: DataType, depth: int) -> str:
    item = f"x{depth}"
    inner = _flagged(item, element, depth + 1)
    items = f"transform({value}, {item} -> struct({inner}))"
    return f"IF({value} IS NULL, NULL, struct(size({value}), {items}))"


def _canonical_map(value: str, dtype: Any, depth: int) -> str:  # noqa: ANN401 - a MapType
    entry = f"x{depth}"
    key = canonical(f"{entry}.key", dtype.keyType, depth + 1)
    inner = _flagged(f"{entry}.value", dtype.valueType, depth + 1)
    entries = f"array_sort(transform(map_entries({value}), {entry} -> struct({key}, {inner})))"
    return f"IF({value} IS NULL, NULL, struct(size({value}), {entries}))"


def _is_incomparable(described: Any) -> bool:  # noqa: ANN401 - Spark's JSON of a type
    match described:
        case {"type": "map"} | "variant":
            return True
        case dict():
            parts = ("type", "elementType", "fields")
            return any(_is_incomparable(described[part]) for part in parts if part in described)
        case list():
            return any(_is_incomparable(element) for element in described)
        case _:
            return False
