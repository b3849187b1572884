"""A column of a model or source: name, Spark type, nullability, and the rules its values obey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class UnknownSchemaCheckError(BackfillAssetsError):
    """A schema declares a check that has no meaning as one predicate over a row."""

    def __init__(self, *, column: str, check: str) -> None:
        self.column, self.check = column, check
        super().__init__(
            f"column '{column}' declares the check '{check}', which can't be compiled into the "
            f"one-pass audit; use one of {', '.join(sorted(_PREDICATES))}, or a row_rule() audit"
        )


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: as it stands in the table.
        dtype: Spark's simple type string, e.g. ``decimal(18,2)``.
        nullable: whether a NULL is allowed.
        unique: whether every value occurs once in the table.
        checks: Spark SQL predicates that every non-null value obeys, as (name, predicate).
        description: what the column means.
    """

    name: str
    dtype: str
    nullable: bool = True
    unique: bool = False
    checks: tuple[tuple[str, str], ...] = ()
    description: str = ""


class SchemaModel(Protocol):
    """What we use of a pandera ``DataFrameModel``: no import of pandera is needed to read one."""

    @classmethod
    def to_schema(cls) -> Any: ...  # noqa: ANN401 - pandera's schema object is untyped


def columns_of(schema: type[SchemaModel] | Sequence[Column]) -> tuple[Column, ...]:
    """Read columns from a ``pandera.pyspark`` model, or take them as they are.

    Raises:
        UnknownSchemaCheckError: a check can't be written as a predicate over one row.
    """
    if not hasattr(schema, "to_schema"):
        return tuple(schema)  # type: ignore[arg-type]
    declared: Mapping[str, Any] = schema.to_schema().columns  # type: ignore[union-attr]
    return tuple(_column(name, column) for name, column in declared.items())


def _column(name: str, declared: Any) -> Column:  # noqa: ANN401
    return Column(
        name=name,
        dtype=_spark_type(declared.dtype),
        nullable=bool(declared.nullable),
        unique=bool(getattr(declared, "unique", False)),
        checks=tuple(_predicate(name, check) for check in declared.checks or ()),
        description=declared.description or "",
    )


def _spark_type(dtype: Any) -> str:  # noqa: ANN401
    """Unwrap pandera's type down to Spark's, which alone knows precision and element types."""
    inner = getattr(dtype, "type", dtype)
    simple = getattr(inner, "simpleString", None)
    return str(simple()) if callable(simple) else str(inner).lower()


def _predicate(column: str, check: Any) -> tuple[str, str]:  # noqa: ANN401
    name = str(check.name)
    compile_predicate = _PREDICATES.get(name)
    if compile_predicate is None:
        raise UnknownSchemaCheckError(column=column, check=name)
    return name, compile_predicate(f"`{column}`", dict(check.statistics or {}))


def sql_literal(value: object) -> str:
    """Write a Python scalar as a Spark SQL literal, text escaped."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _values(allowed: Any) -> str:  # noqa: ANN401
    return ", ".join(sorted(sql_literal(value) for value in allowed))


def _in_range(column: str, stats: dict[str, Any]) -> str:
    low = ">=" if stats.get("include_min", True) else ">"
    high = "<=" if stats.get("include_max", True) else "<"
    return (
        f"{column} {low} {sql_literal(stats['min_value'])} "
        f"AND {column} {high} {sql_literal(stats['max_value'])}"
    )


_PREDICATES = {
    "greater_than": lambda c, s: f"{c} > {sql_literal(s['min_value'])}",
    "greater_than_or_equal_to": lambda c, s: f"{c} >= {sql_literal(s['min_value'])}",
    "less_than": lambda c, s: f"{c} < {sql_literal(s['max_value'])}",
    "less_than_or_equal_to": lambda c, s: f"{c} <= {sql_literal(s['max_value'])}",
    "equal_to": lambda c, s: f"{c} = {sql_literal(s['value'])}",
    "not_equal_to": lambda c, s: f"{c} <> {sql_literal(s['value'])}",
    "in_range": _in_range,
    "isin": lambda c, s: f"{c} IN ({_values(s['allowed_values'])})",
    "notin": lambda c, s: f"{c} NOT IN ({_values(s['forbidden_values'])})",
    "str_contains": lambda c, s: f"{c} RLIKE {sql_literal(s['pattern'])}",
    "str_startswith": lambda c, s: f"startswith({c}, {sql_literal(s['string'])})",
    "str_endswith": lambda c, s: f"endswith({c}, {sql_literal(s['string'])})",
}
