"""Write the comparison of two tables as Spark SQL, which `compare` and people can run."""

# ruff: noqa: S608 - names are our own declarations'; a condition is the SQL that a person gave

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.codec import ADDED_LATER
from backfill_assets.models.column import AUDIT_COLUMNS, CELL_COLUMN, quoted, sql_literal
from backfill_assets.warehouse.files.cells import cell_expression, cell_type, cells_predicate
from backfill_assets.warehouse.files.layers import EVERY_ROW, parts_of
from backfill_assets.warehouse.files.tables import sql_type, type_of
from backfill_assets.warehouse.log.delta_log import delta_json_schema, opened_log
from backfill_assets.warehouse.rows.checksum import canonical, exact_sum, same_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from pyspark.sql.types import DataType

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.layers import ResolvedLayer
    from backfill_assets.warehouse.files.tables import Table

    _Stored: TypeAlias = Mapping[tuple[str, int], Mapping[str, dict[str, Any]]]

BY_CELL = (CELL_COLUMN,)
_HIDDEN = {CELL_COLUMN, *AUDIT_COLUMNS}
COUNTS = ("old_rows", "new_rows", "keys_added", "keys_removed", "rows_changed")


@dataclass(frozen=True, slots=True)
class Compared:
    """Two tables of one model.

    Attributes:
        model: as the new table's snapshot declares it: its key pairs the rows.
        old: the table that is read now, layers included; it may have other columns.
        new: the table that will be read.
        old_model: as the old table's snapshot declares it; None where it has the same cells.
    """

    model: Model
    old: Table
    new: Table
    old_model: Model | None = None

    @property
    def sides(self) -> tuple[tuple[Model, Table], tuple[Model, Table]]:
        """Each table with the model whose cells it has."""
        return (self.old_model or self.model, self.old), (self.model, self.new)

    @property
    def recut(self) -> Model | None:
        """The old table's model, if its cells are others than the new one's."""
        old = self.old_model
        return old if old is not None and old.cadence.grid != self.model.cadence.grid else None


@dataclass(frozen=True, slots=True)
class Question:
    """The grouping and the restrictions of a comparison.

    Attributes:
        by: the columns that it is grouped by, `_cell` for cells; empty for one line in all. A row
            whose value in one of them changes has moved from one group to another.
        cells: only these; None for every cell.
        where: only rows for which this Spark SQL is true, in the old or in the new table.
        computed: those of `by` that are no column, with the Spark SQL that gives them.
        tolerances: of numeric columns: by how much two values may differ and count as equal, as
            written, such as ``0.01``.
        own_tolerances: (column, condition, tolerance): where a condition, Spark SQL, is true of the old
            row and of the new one, its tolerance counts instead; of several the last.
        profile: whether distinct values are counted, and percentiles are taken of numeric columns.
    """

    by: tuple[str, ...] = BY_CELL
    cells: IntervalSet | None = None
    where: str | None = None
    computed: tuple[tuple[str, str], ...] = field(default=(), metadata=ADDED_LATER)
    tolerances: tuple[tuple[str, str], ...] = field(default=(), metadata=ADDED_LATER)
    profile: bool = field(default=False, metadata=ADDED_LATER)
    own_tolerances: tuple[tuple[str, str, str], ...] = field(default=(), metadata=ADDED_LATER)

    @property
    def has_expressions(self) -> bool:
        """Whether a person's own SQL may group its rows, or choose those of a tolerance."""
        return bool(self.computed or self.own_tolerances)

    @property
    def is_whole(self) -> bool:
        """Whether every row of its cells counts, and every difference."""
        return self.where is None and not (self.tolerances or self.own_tolerances)


@dataclass(frozen=True, slots=True)
class Sides:
    """Two tables of one model, with their parts and columns.

    Attributes:
        model: whose they are.
        old: which rows of which tables are the old ones.
        new: the same of the new ones.
        old_types: the old columns.
        new_types: the new columns.
        stored: the columns of each table among the parts, by its path and delta_version, as Delta and Spark
            describe them in JSON.
        old_cell: Spark SQL that gives the new table's cell of an old row.
        old_where: Spark SQL over that cell that keeps the old rows of the cells in question.
    """

    model: Model
    old: tuple[ResolvedLayer, ...]
    new: tuple[ResolvedLayer, ...]
    old_types: Mapping[str, DataType]
    new_types: Mapping[str, DataType]
    stored: _Stored
    old_cell: str = quoted(CELL_COLUMN)
    old_where: str = EVERY_ROW

    @property
    def common(self) -> tuple[str, ...]:
        """The columns that both have, the key's left out."""
        return tuple(
            name for name in self.new_types if name in self.old_types and name not in self.model.key
        )

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that only the new table has."""
        return _without(self.new_types, self.old_types)

    @property
    def removed(self) -> tuple[str, ...]:
        """The columns that only the old table has."""
        return _without(self.old_types, self.new_types)

    @property
    def retyped(self) -> tuple[tuple[str, str, str], ...]:
        """The columns of another type, those of the key included, with the old type and the new one."""
        return tuple(
            (name, type_of(self.old_types[name]), type_of(dtype))
            for name, dtype in self.new_types.items()
            if name in self.old_types and type_of(self.old_types[name]) != type_of(dtype)
        )


def sides_of(compared: Compared, cells: IntervalSet | None) -> Sides:
    """Give the parts and columns of two tables, whose schemas are read without Spark.

    A table that gives no row has the columns of the other one. Where the cells of the old table are others,
    its rows are compared in the cells of the new one, in which their time lies.

    Args:
        compared: the two tables.
        cells: only these of the new table; None for every cell.

    Raises:
        CorruptTableError: a log is damaged.
        RequestError: no column tells in which cell of the new table an old row lies.
    """
    old, new = (
        parts_of(model.cadence, table, cells and model.cadence.snap_out(cells))
        for model, table in compared.sides
    )
    stored = _stored((*old, *new))
    before, after = _columns(compared.model, stored, old, new)
    sides = Sides(compared.model, old, new, _typed(before), _typed(after), stored)
    if compared.recut is None or not old:
        return sides
    where = EVERY_ROW if cells is None else cells_predicate(compared.model.cadence, cells)
    cell = _new_cell(compared.recut, compared.model, before)
    old_cell = f"CAST({cell} AS {cell_type(compared.model.cadence)})"
    return replace(sides, old_cell=old_cell, old_where=where)


def _new_cell(old: Model, new: Model, columns: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the new cell of an old row: by the new time column, if the old table has it, else by the old one."""
    if new.cadence.unit is Unit.WHOLE:
        return cell_expression("", "", new.cadence)
    for time in (new.time_column, old.time_column):
        if time is not None and time in columns:
            with suppress(DeclarationError):
                return cell_expression(time, sql_type(columns[time]["type"]), new.cadence)
    raise RequestError(
        found=f"no column of the published {new.name}, whose cells are one {old.cadence.unit.value} each, tells "
        f"in which {new.cadence.unit.value} a row lies",
        expected="a time column for the new cells: without one the rows can't be compared",
    )


def _columns(
    model: Model, stored: _Stored, old: Sequence[ResolvedLayer], new: Sequence[ResolvedLayer]
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Give the columns of both sides, as Delta and Spark describe them in JSON."""
    before = _own_columns(stored, old)
    fields = before | _own_columns(stored, new)
    declared = {
        column.name: fields[column.name] for column in model.schema if column.name in fields
    }
    return before if old else declared, declared


def _without(columns: Iterable[str], others: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for name in columns if name not in others)


def comparison_sql(compared: Compared, question: Question) -> str:
    """Write the query that compares two tables of a model, group by group."""
    return grouped_sql(sides_of(compared, question.cells), question)


def grouped_sql(sides: Sides, question: Question) -> str:
    """Write the comparison, one row per group."""
    pairs = pairs_sql(sides, question)
    groups = [f"CAST({quoted(name)} AS STRING) AS {quoted(name)}" for name in question.by]
    columns = [
        *groups,
        "count_if(`_in old`) AS `old_rows`",
        "count_if(`_in new`) AS `new_rows`",
        "count_if(NOT `_in old`) AS `keys_added`",
        "count_if(NOT `_in new`) AS `keys_removed`",
        "count_if(size(`_columns changed`) > 0) AS `rows_changed`",
        *_measures(sides),
        *(_profile(sides) if question.profile else ()),
    ]
    by = ", ".join(quoted(name) for name in question.by)
    text = f"{pairs}\nSELECT {_lines(columns)}\nFROM compared"
    if by:
        text += f"\nGROUP BY {by}"
    return f"{text}\nORDER BY {by}" if by else text


def differences_sql(pairs: str, sides: Sides, limit: int, most: str = "") -> str:
    """Write the query that shows some rows that differ.

    Args:
        pairs: the rows side by side, as `pairs_sql` writes them.
        sides: the two tables.
        limit: how many at most.
        most: a numeric column: the rows in which it changes most come first.
    """
    keys = ", ".join(quoted(name) for name in sides.model.key)
    old, new = (
        _struct(f"_{side} ", names)
        for side, names in (("old", sides.old_types), ("new", sides.new_types))
    )
    options = "map('ignoreNullFields', 'false')"
    return (
        f"{pairs}\nSELECT CAST(`{CELL_COLUMN}` AS STRING) AS `{CELL_COLUMN}`, "
        "`_in old`, `_in new`, `_columns changed`,\n"
        f"  to_json(struct({keys}), {options}) AS `key`,\n"
        f"  to_json({old}, {options}) AS `old`,\n  to_json({new}, {options}) AS `new`\n"
        "FROM compared WHERE NOT `_in old` OR NOT `_in new` OR size(`_columns changed`) > 0\n"
        f"ORDER BY {_most(sides, most)}`{CELL_COLUMN}`, `key` LIMIT {limit}"
    )


def _most(sides: Sides, column: str) -> str:
    if not column:
        return ""
    new, old = (
        f"coalesce(CAST({quoted(f'_{side} {column}')} AS DOUBLE), 0D)" if column in types else "0D"
        for side, types in (("new", sides.new_types), ("old", sides.old_types))
    )
    return f"abs({new} - {old}) DESC, "


CHOSEN = "coalesce(o.`_is chosen`, FALSE) OR coalesce(n.`_is chosen`, FALSE)"
"""Keeps pairs of rows of which the question's condition chooses either."""
NOT_CHOSEN = "NOT coalesce(o.`_is chosen`, n.`_is chosen`, FALSE)"
"""Keeps pairs that it does not choose; a row of both tables goes by its old values."""


def pairs_sql(sides: Sides, question: Question, kept: str = CHOSEN) -> str:
    """Write the common part: rows of both tables side by side, and the columns that differ."""
    model, tolerances = sides.model, dict(question.tolerances)
    own = question.own_tolerances
    same = dict.fromkeys((*model.key, CELL_COLUMN, *question.by))
    on = "\n  AND ".join(f"o.{quoted(name)} <=> n.{quoted(name)}" for name in same)
    beside = [
        *(f"coalesce(n.{quoted(name)}, o.{quoted(name)}) AS {quoted(name)}" for name in same),
        "o.`_is there` IS NOT NULL AS `_in old`",
        "n.`_is there` IS NOT NULL AS `_in new`",
        *(f"o.{name} AND n.{name} AS {name}" for name in map(_own, range(len(own)))),
        *(f"o.{quoted(name)} AS {quoted(f'_old {name}')}" for name in sides.old_types),
        *(f"n.{quoted(name)} AS {quoted(f'_new {name}')}" for name in sides.new_types),
    ]
    changed = ",\n    ".join(
        f"IF({_equal(sides, name, tolerances.get(name), own)}, NULL, {sql_literal(name)})"
        for name in sides.common
    )
    old = _side(_old_rows(sides), question)
    new = _side(_rows(sides, sides.new, sides.new_types), question)
    return (
        f"WITH old AS (\n{old}\n),\n"
        f"new AS (\n{new}\n),\n"
        f"pairs AS (\n  SELECT {_lines(beside)}\n"
        f"  FROM old o FULL OUTER JOIN new n ON {on}\n  WHERE {kept}\n),\n"
        "compared AS (\n  SELECT *, IF(`_in old` AND `_in new`, "
        f"array_compact(CAST(array({changed}) AS ARRAY<STRING>)), "
        "CAST(array() AS ARRAY<STRING>)) AS `_columns changed`\n  FROM pairs\n)"
    )


def _everything(sides: Sides, own_types: Mapping[str, DataType]) -> dict[str, str]:
    """Name every column of either side with its type, so that one condition fits both.

    Of columns that differ in case alone, which Spark can't tell apart, a side has its own.
    """
    types = {**sides.old_types, **sides.new_types}
    columns = {
        column.name: column.dtype for column in sides.model.schema if column.name in sides.model.key
    }
    columns |= {name: sql_type(dtype.jsonValue()) for name, dtype in types.items()}
    own = {name.lower() for name in own_types}
    return {
        name: dtype
        for name, dtype in columns.items()
        if name in own_types or name.lower() not in own
    }


def _old_rows(sides: Sides) -> str:
    rows = _rows(sides, sides.old, sides.old_types, sides.old_cell)
    if sides.old_where == EVERY_ROW:
        return rows
    return f"  SELECT * FROM (\n{rows})\n  WHERE {sides.old_where}"


def _rows(
    sides: Sides,
    parts: tuple[ResolvedLayer, ...],
    own_types: Mapping[str, DataType],
    cell: str = quoted(CELL_COLUMN),
) -> str:
    columns = _everything(sides, own_types)
    parts_sql = (_part(part, sides.stored[_table(part)], columns, cell) for part in parts)
    return "\n  UNION ALL\n".join(parts_sql) or _no_rows(
        {**columns, CELL_COLUMN: cell_type(sides.model.cadence)}
    )


def _side(rows: str, question: Question) -> str:
    condition = f"coalesce(({question.where}), FALSE)" if question.where else "TRUE"
    computed = [f"({sql}) AS {quoted(name)}" for name, sql in question.computed]
    own = [
        f"coalesce(({own[1]}), FALSE) AS {_own(number)}"
        for number, own in enumerate(question.own_tolerances)
    ]
    listed = ", ".join(
        ("*", "TRUE AS `_is there`", f"{condition} AS `_is chosen`", *computed, *own)
    )
    return f"  SELECT {listed} FROM (\n{rows})"


def _part(
    part: ResolvedLayer, names: Collection[str], columns: Mapping[str, str], cell: str
) -> str:
    selected = ", ".join(
        quoted(name) if name in names else f"CAST(NULL AS {dtype}) AS {quoted(name)}"
        for name, dtype in columns.items()
    )
    named = "" if cell == quoted(CELL_COLUMN) else f" AS {quoted(CELL_COLUMN)}"
    return (
        f"  SELECT {selected}, {cell}{named}\n  FROM {_table_at(part.path)} VERSION AS OF {part.delta_version}\n"
        f"  WHERE {part.where}"
    )


def _no_rows(columns: Mapping[str, str]) -> str:
    nothing = ", ".join(f"CAST(NULL AS {dtype}) AS {quoted(c)}" for c, dtype in columns.items())
    return f"  SELECT {nothing} WHERE FALSE"


def _table(part: ResolvedLayer) -> tuple[str, int]:
    return part.path, part.delta_version


def _stored(parts: Iterable[ResolvedLayer]) -> _Stored:
    """Read the columns of every table among some parts, each log once: in a bucket each opening takes requests."""
    return {
        (path, at): {column["name"]: column for column in delta_json_schema(opened_log(path, at))}
        for path, at in dict.fromkeys(map(_table, parts))
    }


def _own_columns(stored: _Stored, parts: Iterable[ResolvedLayer]) -> dict[str, dict[str, Any]]:
    """Give the columns of some parts that a model declares; the first part that has one describes it."""
    fields: dict[str, dict[str, Any]] = {}
    for part in parts:
        for name, column in stored[_table(part)].items():
            fields.setdefault(name, column)
    return {name: column for name, column in fields.items() if name not in _HIDDEN}


def _typed(fields: Mapping[str, dict[str, Any]]) -> dict[str, DataType]:
    from pyspark.sql import types as T  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    return {name: T.StructField.fromJson(field).dataType for name, field in fields.items()}


def _own(number: int) -> str:
    """Name the column that says whether a tolerance of some rows counts."""
    return quoted(f"_own {number}")


def _equal(sides: Sides, name: str, usual: str | None, own: Sequence[tuple[str, str, str]]) -> str:
    """Write whether two values count as equal: within the tolerance of their row, if it has one."""
    cases = [
        f"WHEN {_own(number)} THEN {_near(sides, name, tolerance)}"
        for number, (column, _, tolerance) in enumerate(own)
        if column == name
    ]
    within = "FALSE" if usual is None else _near(sides, name, usual)
    if cases:
        within = f"CASE {' '.join(reversed(cases))} ELSE {within} END"
    same = _same(sides, name)
    return same if within == "FALSE" else f"({same} OR {within})"


def _same(sides: Sides, name: str) -> str:
    from pyspark.sql import types as T  # noqa: PLC0415

    old, new = quoted(f"_old {name}"), quoted(f"_new {name}")
    before, after = sides.old_types[name], sides.new_types[name]
    if before != after:
        if isinstance(before, T.NumericType) and isinstance(after, T.NumericType):
            # Both ways: a common type of the two may hold neither value exactly.
            there, back = (
                f"TRY_CAST({value} AS {dtype.simpleString()})"
                for value, dtype in ((old, after), (new, before))
            )
            return f"({there} <=> {new} AND {old} <=> {back})"
        return f"CAST({old} AS STRING) <=> CAST({new} AS STRING)"
    return same_value(old, new, after)


def _near(sides: Sides, name: str, tolerance: str) -> str:
    """Write whether two numbers differ by no more than a tolerance: exactly, unless they are floats."""
    from pyspark.sql import types as T  # noqa: PLC0415

    floats = any(
        isinstance(types[name], T.DoubleType | T.FloatType)
        for types in (sides.old_types, sides.new_types)
    )
    kind = "DOUBLE" if floats else f"DECIMAL(38,{TOLERANCE_PLACES})"
    old, new = (f"TRY_CAST({quoted(f'_{side} {name}')} AS {kind})" for side in ("old", "new"))
    apart = f"abs({new} - {old})" if floats else f"abs(try_subtract({new}, {old}))"
    return f"coalesce({apart} <= CAST('{tolerance}' AS {kind}), FALSE)"


TOLERANCE_PLACES = 9
"""Decimal places of values, and of tolerances, that are not floats."""


def _profile(sides: Sides) -> list[str]:
    """Write counts of distinct values, and the percentiles of numbers, old and new."""
    from pyspark.sql import types as T  # noqa: PLC0415

    columns: list[str] = []
    for side, types in (("old", sides.old_types), ("new", sides.new_types)):
        for name, dtype in types.items():
            if name in sides.model.key:
                continue
            value = quoted(f"_{side} {name}")
            if not isinstance(dtype, T.MapType | T.ArrayType | T.StructType | T.VariantType):
                distinct = f"size(collect_set({canonical(value, dtype)}))"
                columns.append(f"{distinct} AS {quoted(f'{name}: {side} distinct')}")
            if isinstance(dtype, T.NumericType):
                number = f"CAST({value} AS DOUBLE)"
                # Without what is not finite, which has no place among the others, and without -0.0.
                finite = f"IF(abs({number}) < double('Infinity'), {number} + 0D, NULL)"
                taken = f"percentile({finite}, array({', '.join(PERCENTILES)}))"
                columns.append(f"{taken} AS {quoted(f'{name}: {side} percentiles')}")
    return columns


PERCENTILES = ("0.05", "0.5", "0.95")
"""Which ones are taken, between neighbours where there is no value at the place."""


def _measures(sides: Sides) -> list[str]:
    from pyspark.sql import types as T  # noqa: PLC0415

    columns = [
        f"count_if(array_contains(`_columns changed`, {sql_literal(name)})) AS {quoted(f'{name}: changed')}"
        for name in sides.common
    ]
    for side, types in (("old", sides.old_types), ("new", sides.new_types)):
        for name, dtype in types.items():
            if name in sides.model.key:
                continue
            value = quoted(f"_{side} {name}")
            columns.append(f"count({value}) AS {quoted(f'{name}: {side} filled')}")
            if isinstance(dtype, T.NumericType):
                total = exact_sum(value, dtype.simpleString())
                columns.append(f"{total} AS {quoted(f'{name}: {side} sum')}")
    return columns


def _struct(prefix: str, names: Iterable[str]) -> str:
    listed = ", ".join(f"{quoted(prefix + name)} AS {quoted(name)}" for name in names)
    return f"struct({listed})"


def _lines(columns: Iterable[str]) -> str:
    return ",\n    ".join(columns)


def _table_at(path: str) -> str:
    """Name the Delta table at a path, which may hold any character."""
    return f"delta.{quoted(path)}"
