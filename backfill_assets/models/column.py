"""The declaration of a column: name, Spark type, nullability, and the rules that its values obey."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol, cast

from backfill_assets.errors import DeclarationError
from backfill_assets.models.codec import ADDED_LATER
from backfill_assets.models.declared_values import FLAG, listed, require_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


CELL_COLUMN = "_cell"
"""The hidden column of every table: the start of the cell that a row belongs to, UTC."""

AUDIT_COLUMNS = ("_plan_id", "_batch_id", "_code_version", "_inserted_at", "_updated_at")
"""Who wrote a row, and when; only of models with `audit_columns`."""

FLOATS = ("double", "float")
"""Types whose values may have a tolerance."""

LEAST_TOLERANCE = 1e-300
"""Half of it is still a number without loss."""

MASKED = "***"
"""What a sample shows in the place of a value."""


TYPES = frozenset((
    "array", "bigint", "binary", "bool", "boolean", "byte", "char", "character", "date", "dec", "decimal",
    "double", "float", "geography", "geometry", "int", "integer", "interval", "long", "map", "numeric",
    "real", "short", "smallint", "string", "struct", "time", "timestamp", "timestamp_ltz",
    "timestamp_ntz", "tinyint", "varchar", "variant", "void",
))  # fmt: skip
"""The words with which Spark's types begin, and `bool`, which we have always compared as its `boolean`."""

_NOT_STORED = {
    "char": "string", "character": "string", "varchar": "string", "collate": "string without a collation",
    "interval": "a number of days, months or seconds", "time": "a timestamp, or a number of seconds",
    "geography": "binary, as WKB", "geometry": "binary, as WKB",
}  # fmt: skip
"""Words of types that no Delta table gives back, and what to declare instead."""
_COLLATED = re.compile(r"\bstring\s+(collate)\b")
_INCOMPARABLE = re.compile(r"\bmap\s*<|\bvariant\b(?!\s*:)")
_QUOTED = re.compile(r"`[^`]*`|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_WITHOUT_COLON = re.compile(r"([<,]\s*(?:`[^`]*`|[a-z_]\w*))\s+(?=[a-z])")
_FIRST = re.compile(r"\s*(\w+)")
_WITHIN = re.compile(r"(?=(?:\barray\s*<|\bmap\s*<|:)\s*(\w+)|,\s*([a-z_]\w*)\b(?!\s*:))")
"""A type within another one: a field's follows a colon, and a map's second one a comma."""


def _unknown_check(*, column: str, check: str) -> DeclarationError:
    return DeclarationError(
        found=f"column '{column}' declares the check '{check}', which can't be compiled into the "
        "one-pass audit, and checks are never left out",
        do=f"use one of pandera's {', '.join(sorted(_PREDICATES))}; or write the check as an audit: "
        "row_rule(), sql_audit() or python_audit()",
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
        warns: the names of those of which a failure only warns.
        description: what the column means.
        tolerance: of a ``double`` or ``float`` of a model: by how much (in the column's unit) a value
            may differ from what readers have read before they are built again. It is an absolute
            number, and counts for early cutoff alone: every difference is published. None: every
            difference counts.
        shown: whether samples of rows show its values. None: samples of failing rows show those of
            key and time alone, comparisons of old and new rows show all.

    Raises:
        DeclarationError: its name or type is no text.
        DeclarationError: another type has a tolerance, or it is no positive number.
        DeclarationError: `shown` is neither True, False nor None.
    """

    name: str
    dtype: str
    nullable: bool = True
    unique: bool = False
    checks: tuple[tuple[str, str], ...] = ()
    description: str = ""
    tolerance: float | None = None
    warns: tuple[str, ...] = field(default=(), metadata=ADDED_LATER)
    shown: bool | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        require_values(f"column {self.name!r}", self, _VALUES)
        if self.shown not in {True, False, None}:
            raise DeclarationError(
                found=f"column '{self.name}': found shown={self.shown!r}",
                expected="True, False or None",
            )
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", _tolerance(self))


_VALUES = {
    "name": (str, "the name of a column"),
    "dtype": (str, "a type of Spark as text, such as 'bigint'"),
}
_FLAGS = {"nullable": FLAG, "unique": FLAG}
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")
"""By Delta's protocol, for tables without a mapping of columns."""


def require_columns(owner: str, columns: Sequence[Column]) -> None:
    """Refuse types that Spark does not have, and flags that are none.

    Args:
        owner: whose columns they are, for the error.
        columns: as declared.

    Raises:
        DeclarationError: whether one may be NULL, or is unique, is neither True nor False.
        DeclarationError: a type, or one within it, begins with none of the words of Spark's types.
        DeclarationError: it is one that no Delta table gives back.
    """
    for column in columns:
        require_values(f"column '{column.name}' of {owner}", column, _FLAGS)
    require_types(owner, columns)


def require_storable(names: Iterable[str], of: str = "") -> None:
    """Refuse names that no table of ours can store.

    Args:
        names: of columns, or of fields within them.
        of: whose they are, for the error.

    Raises:
        DeclarationError: one holds another character than Delta takes.
    """
    for name in names:
        if not _NOT_IN_NAMES.isdisjoint(name):
            raise DeclarationError(
                found=f"the column or field {name!r}{of} has a name that a Delta table can't store: "
                "it contains a blank, a tab, a line break or one of ,;{}()=",
                do="rename it in the query and in the declaration",
            )


def require_types(owner: str, columns: Iterable[Column]) -> None:
    """Refuse a type that Spark does not have; text that may be one, as far as it is read here, is taken.

    Args:
        owner: whose columns they are, for the error.
        columns: as declared.

    Raises:
        DeclarationError: a type, or one within it, begins with none of the words of Spark's types.
        DeclarationError: it is one that no Delta table gives back.
    """
    for column in columns:
        written = _unquoted(column.dtype)
        for word in [*_words(written), *_COLLATED.findall(written)]:
            if word in _NOT_STORED:
                raise DeclarationError(
                    found=f"column '{column.name}' of {owner}: found the type '{column.dtype}', which no Delta table "
                    "gives back",
                    expected=_NOT_STORED[word],
                )
        for word in _words(written):
            if word in TYPES:
                continue
            close = get_close_matches(word, sorted(TYPES), n=1)
            within = "" if word == column.dtype.strip().lower() else f" in '{column.dtype}'"
            raise DeclarationError(
                found=f"column '{column.name}' of {owner}: found the type '{word}'{within}",
                expected="a type of Spark, such as bigint, string, date or decimal(18,2)",
                do=f"Did you mean '{close[0]}'?" if close else "",
            )


def require_comparable(owner: str, columns: Iterable[Column], what: str) -> None:
    """Refuse columns whose values Spark can't compare: maps and variants, also nested ones.

    Args:
        owner: whose columns they are, for the error.
        columns: those that are compared.
        what: what they are for, for the error.

    Raises:
        DeclarationError: one holds maps or variants.
    """
    for column in columns:
        if _INCOMPARABLE.search(_unquoted(column.dtype)):
            raise DeclarationError(
                found=f"column '{column.name}' of {owner}: found the type '{column.dtype}' in {what}",
                expected="values that Spark can compare, without a map or a variant",
                do="Use a column of text, such as to_json gives",
            )


def _unquoted(dtype: str) -> str:
    return _QUOTED.sub("", _WITHOUT_COLON.sub(r"\1:", dtype.lower()))


def _words(written: str) -> list[str]:
    """Give the words with which a type begins, and those within it."""
    first = _FIRST.match(written)
    within = [of[1] or of[2] for of in _WITHIN.finditer(written)]
    return [*([first[1]] if first else []), *within]


def _tolerance(column: Column) -> float:
    """Give a declared tolerance as a float.

    Raises:
        DeclarationError: the column can't have it.
    """
    given: object = column.tolerance  # the value may have any type that an author wrote
    if canonical_type(column.dtype) not in FLOATS:
        raise DeclarationError(
            found=f"column '{column.name}': found a tolerance on the type {column.dtype}",
            expected="it on a double or float: values of other types are exact",
        )
    number = None
    if isinstance(given, (int, float, Decimal)) and not isinstance(given, bool):
        number = float(given)
    if number is None or not LEAST_TOLERANCE <= number < float("inf"):
        raise DeclarationError(
            found=f"column '{column.name}': found tolerance={given!r}",
            expected=f"a finite number, at least {LEAST_TOLERANCE:g}, in the column's own unit",
        )
    return number


class SchemaModel(Protocol):
    """The part of a pandera ``DataFrameModel`` that is read here, so that pandera need not be imported."""

    @classmethod
    def to_schema(cls) -> Any:  # noqa: ANN401 - pandera's schema object is untyped
        """Give pandera's schema object."""
        ...


def columns_of(schema: type[SchemaModel] | Sequence[Column]) -> tuple[Column, ...]:
    """Read columns from a ``pandera.pyspark`` model, or take them as they are.

    Raises:
        DeclarationError: a check can't be written as a predicate over one row.
    """
    if not hasattr(schema, "to_schema"):
        return listed("a schema", "columns", schema, Column, "Column(name, type)")
    declared: Any = cast("type[SchemaModel]", schema).to_schema()
    whole = ["unique"] if declared.unique else [str(check.name) for check in declared.checks or ()]
    for check in whole:
        raise _unknown_check(column="(all of them)", check=check)
    columns: Mapping[str, Any] = declared.columns
    _refuse_edits("the schema", declared)
    return tuple(_column(name, column) for name, column in columns.items())


def _refuse_edits(what: str, declared: Any) -> None:  # noqa: ANN401
    """Refuse what would change rows, or match columns by a pattern: a schema is only read here.

    Raises:
        DeclarationError: one is declared.
    """
    for option in ("parsers", "drop_invalid_rows", "regex"):
        if getattr(declared, option, None):
            raise DeclarationError(
                found=f"{what} declares pandera's '{option}', which is not run here",
                do="write it into the query, and name each column",
            )


def _column(name: str, declared: Any) -> Column:  # noqa: ANN401
    _refuse_edits(f"column '{name}'", declared)
    return Column(
        name=name,
        dtype=_spark_type(declared.dtype),
        nullable=bool(declared.nullable),
        unique=bool(getattr(declared, "unique", False)),
        checks=tuple(_predicate(name, check) for check in declared.checks or ()),
        description=declared.description or "",
        tolerance=_metadata(declared).get("tolerance"),
        warns=_only_warning(declared.checks or ()),
        shown=_metadata(declared).get("shown"),
    )


def _only_warning(checks: Iterable[Any]) -> tuple[str, ...]:
    """Name the checks of which a failure only warns; one that is declared twice warns where both do."""
    blocking = {str(check.name) for check in checks if not check.raise_warning}
    return tuple(sorted({str(check.name) for check in checks} - blocking))


def _metadata(declared: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return getattr(declared, "metadata", None) or {}


def _spark_type(dtype: Any) -> str:  # noqa: ANN401
    """Unwrap pandera's type down to Spark's, which alone knows precision and element types."""
    inner = getattr(dtype, "type", dtype)
    simple = getattr(inner, "simpleString", None)
    return str(simple()) if callable(simple) else str(inner).lower()


def _predicate(column: str, check: Any) -> tuple[str, str]:  # noqa: ANN401
    name = str(check.name)
    compile_predicate = _PREDICATES.get(name)
    if compile_predicate is None or not _is_built_in(check):
        raise _unknown_check(column=column, check=name)
    predicate = compile_predicate(quoted(column), dict(check.statistics or {}))
    return name, predicate if check.ignore_na else f"coalesce({predicate}, FALSE)"


def _is_built_in(check: Any) -> bool:  # noqa: ANN401
    """Whether a check runs pandera's own code, not an author's; the hash of a check is that of its code."""
    return hash(check) == hash(check.greater_than(0))


_ALIASES = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "bool": "boolean",
    "real": "float", "character": "char", "timestamp_ltz": "timestamp",
}  # fmt: skip
_ALIAS = re.compile(rf"\b({'|'.join(_ALIASES)})\b(?!:)")
"""A word in the place of a type: the name of a field has a colon behind it."""
_BESIDE_A_TYPE = re.compile(
    r"\s+not\s+null\b|\s+comment\s+(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")", re.DOTALL
)
"""What a field of a struct may have besides its type, and a Delta table does not give back with it."""
_DECIMAL = re.compile(r"\b(?:decimal|dec|numeric)\b(?:\((\d+)(?:,(\d+))?\))?(?!:)")
_NUMERIC = re.compile(r"(tiny|small|big)?int|float|double|decimal.*")


def canonical_type(dtype: str) -> str:
    """Give a Spark type in one spelling: `numeric(18, 2)` is `decimal(18,2)`, `array<Long>` is `array<bigint>`."""
    fields = _WITHOUT_COLON.sub(r"\1:", _BESIDE_A_TYPE.sub("", dtype.lower()))
    plain = re.sub(r"[\s`]", "", fields)
    named = _ALIAS.sub(lambda alias: _ALIASES[alias[1]], plain)
    return _DECIMAL.sub(lambda of: f"decimal({of[1] or 10},{of[2] or 0})", named)


def is_numeric(dtype: str) -> bool:
    """Whether Spark's type of a column is a number."""
    return _NUMERIC.fullmatch(canonical_type(dtype)) is not None


def quoted(column: str) -> str:
    """Quote a column's name as a Spark SQL identifier; it may hold any character."""
    return "`" + column.replace("`", "``") + "`"


def all_given(columns: Iterable[str]) -> str:
    """Write Spark SQL that holds where none of some columns is NULL."""
    return " AND ".join(f"{quoted(name)} IS NOT NULL" for name in columns)


def sql_literal(value: object) -> str:
    """Write a Python scalar as a typed Spark SQL literal, text escaped."""
    match value:
        case Enum():
            literal = sql_literal(value.value)
        case bool():
            literal = "TRUE" if value else "FALSE"
        case float() if not isfinite(value):
            literal = f"CAST('{value}' AS DOUBLE)"
        case int() | float():
            literal = repr(value)
        case Decimal():
            literal = f"{value:f}"
        case datetime():
            instant = value if value.tzinfo else value.replace(tzinfo=UTC)  # the session's zone
            literal = f"TIMESTAMP '{instant.isoformat(sep=' ')}'"
        case date():
            literal = f"DATE '{value.isoformat()}'"
        case _:
            escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
            literal = f"'{escaped}'"
    return literal


_Statistics = dict[str, Any]


def _compared(sign: str, bound: str) -> Callable[[str, _Statistics], str]:
    def predicate(column: str, stats: _Statistics) -> str:
        return f"{column} {sign} {sql_literal(stats[bound])}"

    return predicate


def _in(column: str, stats: _Statistics) -> str:
    allowed = one_of(stats["allowed_values"])
    return f"{column} IN ({allowed})" if allowed else "FALSE"


def _not_in(column: str, stats: _Statistics) -> str:
    forbidden = one_of(stats["forbidden_values"])
    return f"{column} NOT IN ({forbidden})" if forbidden else "TRUE"


def one_of(values: Sequence[object]) -> str:
    """List values as literals, in an order that does not depend on theirs; NULL is a rule of its own, and left out."""
    return ", ".join(sorted(sql_literal(value) for value in values if value is not None))


def _in_range(column: str, stats: _Statistics) -> str:
    low = ">=" if stats.get("include_min", True) else ">"
    high = "<=" if stats.get("include_max", True) else "<"
    return (
        f"{column} {low} {sql_literal(stats['min_value'])} "
        f"AND {column} {high} {sql_literal(stats['max_value'])}"
    )


def _matches(column: str, stats: _Statistics) -> str:
    """Compile that a value begins with a match, whichever of a pattern's alternatives it is."""
    pattern = _pattern(stats)
    pattern = f"(?:{pattern})" if "|" in pattern else pattern
    return f"{column} RLIKE {sql_literal(pattern if pattern.startswith('^') else '^' + pattern)}"


def _contains(column: str, stats: _Statistics) -> str:
    return f"{column} RLIKE {sql_literal(_pattern(stats))}"


def _pattern(stats: _Statistics) -> str:
    return str(getattr(stats["pattern"], "pattern", stats["pattern"]))


def _length(column: str, stats: _Statistics) -> str:
    signs = (("exact_value", "="), ("min_value", ">="), ("max_value", "<="))
    return " AND ".join(
        f"length({column}) {sign} {sql_literal(stats[name])}"
        for name, sign in signs
        if stats.get(name) is not None
    )


def _calls(function: str) -> Callable[[str, _Statistics], str]:
    def predicate(column: str, stats: _Statistics) -> str:
        return f"{function}({column}, {sql_literal(stats['string'])})"

    return predicate


_PREDICATES: Mapping[str, Callable[[str, _Statistics], str]] = {
    "greater_than": _compared(">", "min_value"),
    "greater_than_or_equal_to": _compared(">=", "min_value"),
    "less_than": _compared("<", "max_value"),
    "less_than_or_equal_to": _compared("<=", "max_value"),
    "equal_to": _compared("=", "value"),
    "not_equal_to": _compared("<>", "value"),
    "in_range": _in_range,
    "isin": _in,
    "notin": _not_in,
    "str_contains": _contains,
    "str_matches": _matches,
    "str_length": _length,
    "str_startswith": _calls("startswith"),
    "str_endswith": _calls("endswith"),
}
