"""Compare two tables of one model without Spark, for few rows of plain types.

The result is that of `compare`, within a second where a cold JVM takes many. A comparison that can't be
read exactly as Spark reads it is refused: the caller then uses Spark.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import types as T

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.warehouse.compare.compare import Comparison, Difference, shown_decimal
from backfill_assets.warehouse.compare.comparison_sql import (
    PERCENTILES,
    TOLERANCE_PLACES,
    grouped_sql,
    sides_of,
)
from backfill_assets.warehouse.files.rows_in_files import rows_in_files
from backfill_assets.warehouse.rows.checksum import EXACT, sum_of_doubles
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import DataType

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.compare.comparison_sql import Compared, Question, Sides
    from backfill_assets.warehouse.files.tables import Table

    _Row = Mapping[str, Any]
    _Key: TypeAlias = tuple[Any, ...]

MOST_ROWS = 100_000
"""Of both sides together; more rows are compared by Spark."""

_WHOLE = (T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType())
_GROUPED = (*_WHOLE, T.StringType(), T.BooleanType(), T.DateType())
_KEYS = (*_GROUPED, T.TimestampType())
_WHOLE_DIGITS = 38 - TOLERANCE_PLACES - 1
_CELL = T.DateType()
"""Or a timestamp at a full second, whose text is the same in both."""


@dataclass(frozen=True, slots=True)
class RowsCompared:
    """The rows of two tables beside each other.

    Attributes:
        sides: the two tables.
        question: how they were compared.
        pairs: an old row and the new one with its key, or one of them alone.
    """

    sides: Sides
    question: Question
    pairs: Sequence[tuple[_Row | None, _Row | None]]

    def comparison(self) -> Comparison:
        """Count, group by group, as `compare` does."""
        grouped: dict[_Key, list[tuple[_Row | None, _Row | None]]] = defaultdict(list)
        if not self.question.by:
            grouped[()] = []
        for old, new in self.pairs:
            row = _present(old, new)
            grouped[tuple(_text(row[name]) for name in self.question.by)].append((old, new))
        groups = (self._group(by, pairs) for by, pairs in grouped.items())
        ordered = sorted(groups, key=lambda group: [(text is not None, text) for text in group.by])
        sql, sides = grouped_sql(self.sides, self.question), self.sides
        return Comparison(self.question.by, tuple(ordered), sides.added, sides.removed, sql)

    def differences(self, limit: int, most: str = "") -> tuple[Difference, ...]:
        """Show a few rows that differ, as `compare.differences` does."""
        differing = (
            (_text(_present(old, new)[CELL_COLUMN]), self._key_text(_present(old, new)), old, new)
            for old, new in self.pairs
            if old is None or new is None or self._changed(old, new)
        )
        first = sorted(
            differing,
            key=lambda difference: (
                *_distance(most, difference[2], difference[3]),
                difference[0] or "",
                difference[1],
            ),
        )[:limit]
        return tuple(
            self._difference(cell or "", key, old, new).masked(self.sides.model)
            for cell, key, old, new in first
        )

    def _changed(self, old: _Row, new: _Row) -> list[str]:
        return [
            name
            for name in self.sides.common
            if not _is_same(old[name], new[name])
            and not _is_near(old[name], new[name], self._tolerances.get(name))
        ]

    @property
    def _tolerances(self) -> dict[str, str]:
        return dict(self.question.tolerances)

    def _group(self, by: _Key, pairs: Sequence[tuple[_Row | None, _Row | None]]) -> Group:
        changed: dict[str, int] = defaultdict(int)
        rows_changed = 0
        for old, new in pairs:
            if old is not None and new is not None and (names := self._changed(old, new)):
                rows_changed += 1
                for name in names:
                    changed[name] += 1
        olds = [old for old, _ in pairs if old is not None]
        news = [new for _, new in pairs if new is not None]
        return Group(
            by=by,
            old_rows=len(olds),
            new_rows=len(news),
            keys_added=len(pairs) - len(olds),
            keys_removed=len(pairs) - len(news),
            rows_changed=rows_changed,
            columns={
                name: self._measure(name, changed[name], olds, news)
                for name in dict.fromkeys((*self.sides.new_types, *self.sides.old_types))
                if name not in self.sides.model.key
            },
        )

    def _measure(
        self, name: str, changed: int, olds: Sequence[_Row], news: Sequence[_Row]
    ) -> Measure:
        old_filled, old_sum = _summed(name, self.sides.old_types, olds)
        new_filled, new_sum = _summed(name, self.sides.new_types, news)
        measure = Measure(changed, old_filled, new_filled, old_sum, new_sum)
        if not self.question.profile:
            return measure
        before, after = (
            _profiled(name, types, rows)
            for types, rows in ((self.sides.old_types, olds), (self.sides.new_types, news))
        )
        return replace(
            measure,
            old_distinct=before[0],
            new_distinct=after[0],
            old_percentiles=before[1],
            new_percentiles=after[1],
        )

    def _key_text(self, row: _Row) -> str:
        values = {name: _as_json(row[name]) for name in self.sides.model.key}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    def _difference(self, cell: str, key: str, old: _Row | None, new: _Row | None) -> Difference:
        sides = self.sides
        if old is None or new is None:
            change = "added" if old is None else "removed"
            before = {} if old is None else {name: _as_json(old[name]) for name in sides.old_types}
            after = {} if new is None else {name: _as_json(new[name]) for name in sides.new_types}
            return Difference(cell, json.loads(key), change, before, after)
        names = self._changed(old, new)
        before, after = ({name: _as_json(row[name]) for name in names} for row in (old, new))
        return Difference(cell, json.loads(key), "changed", before, after)


def compare_rows(compared: Compared, question: Question) -> RowsCompared:
    """Read the rows of some cells of two tables, and put them beside each other by key.

    Args:
        compared: the two tables.
        question: how they are grouped and to what they are restricted.

    Raises:
        NeedsSparkError: there are too many, or only Spark can read them exactly.
        CorruptTableError: a table's log is damaged.
    """
    sides = sides_of(compared, question.cells)
    if not (sides.old or sides.new):
        return RowsCompared(sides, question, [])
    _refuse_unlike(compared, sides, question)
    cells = question.cells
    if cells is None:
        raise NeedsSparkError(compared.new.path, "all of its cells are to be read")
    model = compared.model
    names = (*{**sides.old_types, **sides.new_types}, CELL_COLUMN)
    old = [*_rows(model, compared.old, cells, names, MOST_ROWS)]
    new = [*_rows(model, compared.new, cells, names, MOST_ROWS - len(old))]
    same = tuple(dict.fromkeys((*model.key, CELL_COLUMN, *question.by)))
    return RowsCompared(sides, question, [*_paired(old, new, same)])


def _refuse_unlike(compared: Compared, sides: Sides, question: Question) -> None:
    """Refuse comparisons whose result may differ from Spark's: conditions, and types that only Spark reads."""
    if compared.recut is not None:
        raise NeedsSparkError(compared.new.path, "the old table has other cells")
    if question.where is not None:
        raise NeedsSparkError(compared.new.path, "a condition chooses its rows")
    if question.computed:
        raise NeedsSparkError(compared.new.path, "an expression groups its rows")
    if question.own_tolerances:
        raise NeedsSparkError(compared.new.path, "a tolerance counts in some of its rows")
    for types in (sides.old_types, sides.new_types):
        unlike = [
            *(name for name, dtype in types.items() if not _is_known(dtype)),
            *(name for name, dtype in types.items() if sides.old_types.get(name, dtype) != dtype),
            *(name for name in compared.model.key if types.get(name) not in _KEYS),
            *(name for name in question.by if types.get(name, _CELL) not in _GROUPED),
            *(name for name, _ in question.tolerances if _is_wide(types.get(name))),
        ]
        if unlike:
            reason = f"column '{unlike[0]}' has a type, or two, that it compares otherwise"
            raise NeedsSparkError(compared.new.path, reason)


def _is_known(dtype: DataType) -> bool:
    return dtype in _KEYS or isinstance(dtype, T.DoubleType | T.DecimalType)


def _is_wide(dtype: DataType | None) -> bool:
    """Whether Spark may lose digits of a decimal when it is held against a tolerance."""
    if not isinstance(dtype, T.DecimalType):
        return False
    return dtype.scale > TOLERANCE_PLACES or dtype.precision - dtype.scale > _WHOLE_DIGITS


def _rows(
    model: Model, table: Table, cells: IntervalSet, names: Sequence[str], most: int
) -> Iterator[_Row]:
    """Read the rows of some cells, layers included; columns that a table lacks are NULL there.

    Raises:
        NeedsSparkError: there are too many, or only Spark reads them exactly.
    """
    nothing = dict.fromkeys(names)
    for read in rows_in_files(model, table, cells, names, most):
        try:
            rows = read.to_pylist()
        except OverflowError as error:  # a time that Python does not know, as of the year 10000
            raise NeedsSparkError(table.path, str(error)) from error
        yield from ({**nothing, **row} for row in rows)


def _paired(
    old: Sequence[_Row], new: Sequence[_Row], same: Sequence[str]
) -> Iterator[tuple[_Row | None, _Row | None]]:
    """Join both sides by their equal columns, every row of one side with every row of the other."""
    sides: list[dict[_Key, list[_Row]]] = []
    for rows in (old, new):
        by_key: dict[_Key, list[_Row]] = defaultdict(list)
        for row in rows:
            by_key[tuple(row[name] for name in same)].append(row)
        sides.append(by_key)
    before, after = sides
    for key in dict.fromkeys((*before, *after)):
        yield from product(before.get(key) or [None], after.get(key) or [None])


def _present(old: _Row | None, new: _Row | None) -> _Row:
    row = new if new is not None else old
    assert row is not None  # noqa: S101 - a pair has at least one row
    return row


def _is_same(value: Any, other: Any) -> bool:  # noqa: ANN401 - a value of a row
    """Compare as Spark's `<=>` does: NULLs are equal, and NaNs too."""
    return value == other or (value != value and other != other)  # noqa: PLR0124 - only NaN differs from itself


def _is_near(value: Any, other: Any, tolerance: str | None) -> bool:  # noqa: ANN401 - of a row
    """Whether two numbers differ by no more than a tolerance, as Spark decides it."""
    if tolerance is None or value is None or other is None:
        return False
    if isinstance(value, float):
        return abs(other - value) <= float(tolerance)
    return abs(Decimal(other) - Decimal(value)) <= Decimal(tolerance)


def _distance(most: str, old: _Row | None, new: _Row | None) -> tuple[float, ...]:
    """Give how far apart two values are, the farthest first; NaN is farther than any."""
    if not most:
        return ()
    before, after = (0.0 if row is None else float(row.get(most) or 0) for row in (old, new))
    apart = abs(after - before)
    return (-math.inf, -1.0) if math.isnan(apart) else (-apart, 0.0)


def _profiled(
    name: str, types: Mapping[str, DataType], rows: Sequence[_Row]
) -> tuple[int | None, tuple[float, ...] | None]:
    """Count the different values of a column, and take its percentiles, as Spark does."""
    if name not in types:
        return None, None
    values = [row[name] for row in rows if row[name] is not None]
    distinct = {"NaN" if value != value else value for value in values}  # noqa: PLR0124 - only NaN
    if not isinstance(types[name], T.NumericType):
        return len(distinct), None
    ordered = sorted(number + 0.0 for number in map(float, values) if math.isfinite(number))
    taken = tuple(_percentile(ordered, float(share)) for share in PERCENTILES) if ordered else None
    return len(distinct), taken


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Take a percentile between its neighbours, in the order of operations in which Spark does."""
    place = (len(ordered) - 1) * share
    low, high = math.floor(place), math.ceil(place)
    if low == high or ordered[low] == ordered[high]:
        return ordered[low]
    return (high - place) * ordered[low] + (place - low) * ordered[high]


def _summed(
    name: str, types: Mapping[str, DataType], rows: Sequence[_Row]
) -> tuple[int, Decimal | None]:
    """Count the values of a column, and sum them exactly, as `checksum.exact_sum` does."""
    if name not in types:
        return 0, None
    values = [row[name] for row in rows if row[name] is not None]
    dtype = types[name]
    match dtype:
        case T.DoubleType():
            return len(values), sum_of_doubles((value, 1) for value in values)
        case T.DecimalType():
            units = sum(int(value.scaleb(dtype.scale, EXACT)) for value in values)
            return len(values), Decimal(units).scaleb(-dtype.scale, EXACT)
        case T.IntegralType():
            return len(values), Decimal(sum(values))
        case _:
            return len(values), None


def _text(value: Any) -> str | None:  # noqa: ANN401 - a value of a row
    """Write a value as Spark casts it to a string."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
        case _:
            return str(value)


def _as_json(value: Any) -> Any:  # noqa: ANN401 - a value of a row
    """Give a value as Python reads it from the JSON that Spark writes."""
    match value:
        case Decimal():
            return json.loads(format(value, "f"), parse_float=shown_decimal)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            text = value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
            return f"{text}Z"
        case date():
            return value.isoformat()
        case _:
            return value
