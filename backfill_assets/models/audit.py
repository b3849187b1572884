"""The declarations of audits: blocking or warning tests that a batch must pass before its commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.durations import read_duration
from backfill_assets.intervals.instants import read
from backfill_assets.intervals.text import counted
from backfill_assets.models.column import one_of, quoted, sql_literal
from backfill_assets.models.declared_values import listed
from backfill_assets.models.number import Number, Of
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery, function_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def _empty_audit(*, audit: str, missing: str) -> DeclarationError:
    return DeclarationError(
        found=f"audit '{audit}' has no {missing}, so it could not fail (or not pass) a single row",
        do="give it one, or leave it out",
    )


class Severity(StrEnum):
    """Whether a failed audit keeps the batch from being committed."""

    BLOCKING = "blocking"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class RowRule:
    """Every row obeys a Spark SQL predicate; in each cell at most `allowed` (a fraction of its rows) may not.

    A predicate that is NULL for a row does not fail it: nullability is a rule of its own.
    """

    name: str
    predicate: str
    allowed: float = 0.0
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows share a value of `columns`, in the batch or with the table's other cells."""

    name: str
    columns: tuple[str, ...]
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class RowCountWithin:
    """The row count of each cell stays within a fraction of its previous row count."""

    name: str
    fraction: float
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class References:
    """Every non-null value of `column` exists in `to_column` of `upstream`, but for `allowed` (a fraction of each cell's rows)."""

    name: str
    column: str
    upstream: str
    to_column: str
    allowed: float = 0.0
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class Reconciles:
    """The sum of `column` equals the sum of `to_column` of `upstream` over the same cells.

    Either may be `ROWS`: then the number of rows stands in place of a sum.
    """

    name: str
    column: str
    upstream: str
    to_column: str
    tolerance: float = 0.0
    severity: Severity = Severity.BLOCKING


ROWS_TABLE = "{rows}"
"""What an author's query names the rows of the batch."""

ROWS = "*"
"""In the place of a column of `Reconciles`: the number of rows."""


def total_words(column: str) -> str:
    """Name the sum: of a column, or of the rows."""
    return _total(column).words


@dataclass(frozen=True, slots=True)
class NumberWithin:
    """A number of each cell lies in ``[low, high]``; None leaves a side open.

    A cell in which the number has no value (a percentile of no rows) does not fail it.
    """

    name: str
    number: Number
    low: float | None
    high: float | None
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class NearPublished:
    """A number stays near what the same cells publish: within a fraction of it, or an absolute amount.

    Cells that were never published, or whose published rows have no value in the column, are left out.
    With `together` the numbers of all cells of the batch are added up first.
    """

    name: str
    number: Number
    fraction: float = 0.0
    absolute: float = 0.0
    together: bool = False
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class NearNeighbours:
    """A number of each cell lies in a robust band over the cells around it: no cliff, no spike.

    The band is the median of up to `neighbours` cells on each side, give or take `band` times their
    scaled median absolute deviation (1.4826 times it, and at least a hundredth of the median). With fewer than
    four such cells, or where most of them are zero, there is no band.

    Source: F. R. Hampel, The influence curve and its role in robust estimation, 1974.
    """

    name: str
    number: Number
    neighbours: int
    band: float
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class Fresh:
    """The newest value of a timestamp column lies at most `seconds` before the end of its cell.

    A cell in which no row has a value there fails.
    """

    name: str
    column: str
    seconds: int
    severity: Severity = Severity.BLOCKING

    @property
    def number(self) -> Number:
        """What is measured: the newest value, in microseconds since 1970."""
        return Number(Of.NEWEST, self.column)


@dataclass(frozen=True, slots=True)
class Complete:
    """Each cell has a row of each entity; at most `allowed` of them may lack.

    Entities are declared, or those with a row in the `seen` cells before the cell, published or of the
    same batch.
    """

    name: str
    columns: tuple[str, ...]
    entities: tuple[tuple[str, ...], ...] = ()
    seen: int = 0
    allowed: int = 0
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A row that is known.

    Attributes:
        when: its local date or instant, as written; empty in a model that is one cell.
        where: the condition on its key, as Spark SQL.
        holds: the condition on its known values, as Spark SQL.
    """

    when: str
    where: str
    holds: str


@dataclass(frozen=True, slots=True)
class KnownRows:
    """A few rows are known: each is there in its cell, with these values."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[KnownRow, ...]
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True)
class SqlAudit:
    """A query over the batch's rows, which it names ``{rows}``, gives those that fail."""

    name: str
    sql: str
    severity: Severity = Severity.BLOCKING


@dataclass(frozen=True, slots=True, eq=False)
class PythonAudit:
    """A PySpark function over the batch's rows gives those that fail.

    Two are equal where their code is, as that of models is: an edit of another part of the module changes
    neither.
    """

    name: str
    query: ModuleQuery | FunctionQuery
    severity: Severity = Severity.BLOCKING

    def __eq__(self, other: object) -> bool:
        """Compare the code that decides."""
        return isinstance(other, PythonAudit) and self.settled() == other.settled()

    def __hash__(self) -> int:
        """Hash the code that decides."""
        return hash(self.settled())

    def settled(self) -> tuple[str, Severity, str]:
        """Give what decides which rows fail, and what a failure does."""
        return self.name, self.severity, self.query.identity()


Counting = RowRule | Unique | References | Complete | KnownRows | SqlAudit | PythonAudit
"""Audits of which the failing rows (or entities) of each cell are counted."""

Numbering = NumberWithin | NearPublished | NearNeighbours | Fresh
"""Audits that measure a number of each cell."""

Audit = Counting | Numbering | RowCountWithin | Reconciles


_FEWEST_NEIGHBOURS = 2


def row_rule(name: str, predicate: str, *, allowed: float = 0.0, warn: bool = False) -> RowRule:
    """Audit every row with a Spark SQL predicate."""
    return RowRule(name, predicate, allowed, _severity(warn=warn))


def not_null(column: str, *, allowed: float = 0.0, warn: bool = False) -> RowRule:
    """Audit that `column` has a value, in all rows but the allowed fraction."""
    return RowRule(
        f"not_null_{column}", f"{quoted(column)} IS NOT NULL", allowed, _severity(warn=warn)
    )


def accepted_range(
    column: str, low: float | None, high: float | None, *, warn: bool = False
) -> RowRule:
    """Audit that `column` lies in ``[low, high]``; None leaves a side open."""
    sides = [
        f"{quoted(column)} {sign} {sql_literal(bound)}"
        for sign, bound in ((">=", low), ("<=", high))
        if bound is not None
    ]
    name = f"accepted_range_{column}"
    if not sides:
        raise _empty_audit(audit=name, missing="bound")
    numbers = [bound for bound in (low, high) if isinstance(bound, (int, float, Decimal))]
    _require(name, "bounds that are no NaN", not any(map(isnan, numbers)))
    _require(name, "the lower bound first", numbers == sorted(numbers))
    return RowRule(name, " AND ".join(sides), 0.0, _severity(warn=warn))


def accepted_values(column: str, values: Iterable[object], *, warn: bool = False) -> RowRule:
    """Audit that `column` is one of the values; None among them says nothing, for nullability is a rule of its own."""
    name = f"accepted_values_{column}"
    accepted = one_of(listed(f"audit '{name}'", "values", values, object, "values"))
    if not accepted:
        raise _empty_audit(audit=name, missing="value")
    rule = f"{quoted(column)} IN ({accepted})"
    return RowRule(name, rule, 0.0, _severity(warn=warn))


def unique(*columns: str, warn: bool = False) -> Unique:
    """Audit that no two rows of the table share these columns."""
    if not columns:
        raise _empty_audit(audit="unique", missing="column")
    return Unique(f"unique_{'_'.join(columns)}", columns, _severity(warn=warn))


def row_count_within(fraction: float, *, warn: bool = False) -> RowCountWithin:
    """Audit that a rebuilt cell keeps its number of rows, give or take a fraction."""
    name = "row_count_within"
    _require(name, "a fraction of 0 or more", _is_amount(fraction))
    return RowCountWithin(name, fraction, _severity(warn=warn))


def references(
    column: str, upstream: str, to_column: str, *, allowed: float = 0.0, warn: bool = False
) -> References:
    """Audit referential integrity against an upstream."""
    name = f"references_{column}"
    return References(name, column, upstream, to_column, allowed, _severity(warn=warn))


def reconciles(
    column: str,
    upstream: str,
    to_column: str | None = None,
    *,
    tolerance: float = 0.0,
    warn: bool = False,
) -> Reconciles:
    """Audit that a sum agrees with the upstream's, within a fraction of the upstream's sum.

    ``"*"`` as a column stands for the number of rows, so that ``reconciles("orders", "shop.raw_orders",
    "*")`` compares a sum with a count.
    """
    name = f"reconciles_{'rows' if column == ROWS else column}"
    return Reconciles(name, column, upstream, to_column or column, tolerance, _severity(warn=warn))


def total_within(
    column: str, low: float | None, high: float | None, *, warn: bool = False
) -> NumberWithin:
    """Audit that the sum of `column` in each cell lies in ``[low, high]``."""
    return _number_within(Number(Of.TOTAL, column), low, high, warn=warn)


def distinct_within(
    column: str, low: float | None, high: float | None, *, warn: bool = False
) -> NumberWithin:
    """Audit that each cell has from `low` to `high` distinct values of `column`."""
    return _number_within(Number(Of.DISTINCT, column), low, high, warn=warn)


def percentile_within(
    column: str, share: float, low: float | None, high: float | None, *, warn: bool = False
) -> NumberWithin:
    """Audit that a percentile of `column` in each cell lies in ``[low, high]``; a `share` of 0.5 is the median."""
    if not 0 <= share <= 1:
        raise DeclarationError(
            found=f"a percentile at {share:g} of '{column}'", expected="a fraction from 0 to 1"
        )
    return _number_within(Number(Of.PERCENTILE, column, share), low, high, warn=warn)


def metric_within(
    column: str,
    fraction: float = 0.0,
    *,
    absolute: float = 0.0,
    together: bool = False,
    warn: bool = False,
) -> NearPublished:
    """Audit that a sum stays near the published one of the same cells, or with `together` of the batch.

    Args:
        column: summed; ``"*"`` for the number of rows.
        fraction: of the published sum, by which it may differ.
        absolute: an amount by which it may differ, whatever the fraction.
        together: compare the sums over all cells of the batch that are published.
        warn: let a failure only warn.
    """
    name = f"metric_within_{_named(column)}"
    _require(
        name, "a fraction and an amount of 0 or more", _is_amount(fraction), _is_amount(absolute)
    )
    return NearPublished(name, _total(column), fraction, absolute, together, _severity(warn=warn))


def trend_within(
    column: str, *, neighbours: int = 7, band: float = 6.0, warn: bool = False
) -> NearNeighbours:
    """Audit that a sum (``"*"``: the number of rows) lies in a robust band over the cells around it."""
    name = f"trend_within_{_named(column)}"
    expected = f"at least {_FEWEST_NEIGHBOURS} neighbours on either side, and a band above 0"
    _require(name, expected, neighbours >= _FEWEST_NEIGHBOURS, _is_amount(band), band > 0)
    return NearNeighbours(name, _total(column), neighbours, band, _severity(warn=warn))


def fresh(column: str, within: timedelta | str, *, warn: bool = False) -> Fresh:
    """Audit that rows reach to the end of each cell, so that one which stops at noon is noticed.

    Args:
        column: a timestamp.
        within: how far its newest value may lie before the end of the cell: a timedelta, or a text such
            as ``"90m"``, ``"6h"`` or ``"2d"``.
        warn: let a failure only warn.
    """
    name = f"fresh_{column}"
    length = read_duration(within) if isinstance(within, str) else within
    if length is None or length < timedelta(0) or length.microseconds:
        raise DeclarationError(
            found=f"audit '{name}' within {within!r}",
            expected='whole seconds as a timedelta, or minutes, hours or days as a text: "90m", "6h", "2d"',
        )
    return Fresh(name, column, round(length.total_seconds()), _severity(warn=warn))


def complete(
    *columns: str,
    entities: Iterable[object] = (),
    seen: int = 7,
    allowed: int = 0,
    warn: bool = False,
) -> Complete:
    """Audit that each cell has rows for each entity.

    Args:
        columns: what an entity is.
        entities: those that are expected, tuples where `columns` are several; none given: those with a
            row in the `seen` cells before.
        seen: how many cells these are.
        allowed: how many entities may lack in a cell.
        warn: let a failure only warn.
    """
    if not columns:
        raise _empty_audit(audit="complete", missing="column")
    given = listed("audit 'complete'", "entities", entities, object, "values")
    expected = tuple(tuple(map(sql_literal, _values(entity))) for entity in given)
    for entity in expected:
        if len(entity) != len(columns):
            raise DeclarationError(
                found=f"audit 'complete' names an entity of {counted(len(entity), 'value')}",
                expected=f"one value for each of {', '.join(columns)}",
            )
    name = f"complete_{'_'.join(columns)}"
    _require(name, "seen=1 or more, and allowed=0 or more", seen >= 1, allowed >= 0)
    return Complete(name, columns, expected, 0 if expected else seen, allowed, _severity(warn=warn))


def known_rows(
    rows: Iterable[tuple[Mapping[str, object], Mapping[str, object]]],
    *,
    time_column: str = "",
    name: str = "known_rows",
    warn: bool = False,
) -> KnownRows:
    """Audit that rows which are known are there, with the values that are known of them.

    Args:
        rows: pairs of the key, its time column included, and the known values.
        time_column: the column of the key that says in which cell a row lies; empty in a model that is
            rebuilt as a whole.
        name: of the audit.
        warn: let a failure only warn.
    """
    pairs = [(dict(key), dict(values)) for key, values in rows]
    if not pairs:
        raise _empty_audit(audit=name, missing="row")
    for key, _ in pairs:
        if not key:
            raise _empty_audit(audit=name, missing="key of a row")
        if time_column and time_column not in key:
            raise DeclarationError(
                found=f"audit '{name}': a key without '{time_column}'",
                expected="the time column in every key: it says in which cell the row lies",
            )
    expected_rows = tuple(
        KnownRow(
            _when(key[time_column]) if time_column else "", _equal(key), _equal(values) or "TRUE"
        )
        for key, values in pairs
    )
    for row in expected_rows:
        if row.when:
            read(row.when)
    columns = dict.fromkeys(column for key, values in pairs for column in (*key, *values))
    return KnownRows(name, tuple(columns), expected_rows, _severity(warn=warn))


def sql_audit(name: str, sql: str, *, warn: bool = False) -> SqlAudit:
    """Audit with a query of your own, which gives the rows that fail.

    Args:
        name: of the audit.
        sql: Spark SQL over ``{rows}``, the batch's rows; where its answer has the column ``_cell``, as
            ``SELECT *`` does, failing rows are counted by cell.
        warn: let a failure only warn.
    """
    if ROWS_TABLE not in sql:
        raise DeclarationError(
            found=f"audit '{name}': a query that does not read the batch's rows",
            expected="{rows} as the table: SELECT * FROM {rows} WHERE ...",
        )
    return SqlAudit(name, sql, _severity(warn=warn))


def python_audit(name: str, function: Callable[..., Any], *, warn: bool = False) -> PythonAudit:
    """Audit with a PySpark function of your own, which gives the rows that fail.

    Args:
        name: of the audit.
        function: from the batch's rows to those that fail, at the top level of a module; where these
            have the column ``_cell``, as filtered rows do, they are counted by cell. It is stored with the
            snapshot, and may read nothing but its rows.
        warn: let a failure only warn.

    Raises:
        DeclarationError: its source isn't the top level of a file.
    """
    return PythonAudit(name, function_query(function), _severity(warn=warn))


def _require(name: str, expected: str, *holds: bool) -> None:
    if not all(holds):
        raise DeclarationError(found=f"audit '{name}' can't be used as it is", expected=expected)


def _is_amount(value: float) -> bool:
    return isfinite(value) and value >= 0


def _values(entity: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", entity) if isinstance(entity, tuple) else (entity,)


def _number_within(
    number: Number, low: float | None, high: float | None, *, warn: bool
) -> NumberWithin:
    kind = {Of.TOTAL: "total", Of.DISTINCT: "distinct"}.get(number.of, f"p{number.share * 100:g}")
    name = f"{kind}_within_{number.column}"
    if low is None and high is None:
        raise _empty_audit(audit=name, missing="bound")
    bounds = [bound for bound in (low, high) if bound is not None]
    _require(name, "numbers, the lower one first", *map(isfinite, bounds), bounds == sorted(bounds))
    return NumberWithin(name, number, low, high, _severity(warn=warn))


def _total(column: str) -> Number:
    return Number(Of.ROWS) if column == ROWS else Number(Of.TOTAL, column)


def _named(column: str) -> str:
    return "rows" if column == ROWS else column


def _equal(values: Mapping[str, object]) -> str:
    return " AND ".join(
        f"{quoted(name)} <=> {'NULL' if value is None else sql_literal(value)}"
        for name, value in values.items()
    )


def _when(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)  # as its literal: the session's zone
    return value.isoformat() if isinstance(value, date) else str(value)


def _severity(*, warn: bool) -> Severity:
    return Severity.WARNING if warn else Severity.BLOCKING
