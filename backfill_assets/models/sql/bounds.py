"""Check that an incremental SQL query cuts its interval on the right column, end exclusive, by its own type.

A row may have several times (event, ingestion, update, effective, creation). The upstream declares
the one that cuts its history. A query that is bounded on another one puts late rows into the wrong
cell, or into none. This is the commonest error in backfills, so such a model does not load.

Nor does one that compares dates with instants where a local day does not begin at midnight in UTC, the
zone of Spark's sessions: rows at the edges of every batch would be in no cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.zones import is_utc
from backfill_assets.models.column import canonical_type
from backfill_assets.models.kind import Full
from backfill_assets.models.sql.bound_comparisons import (
    BoundComparison,
    ColumnOrigin,
    bounded_betweens,
    bounding_comparisons,
    parameters_of,
)
from backfill_assets.models.sql.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source

    _Types: TypeAlias = Mapping[tuple[str, str], str]  # by table and column, in small letters

_STARTS = frozenset({"start_ds", "start_ts"})
_ENDS = frozenset({"end_ds", "end_ts"})
_DATES = frozenset({"start_ds", "end_ds"})
_INSTANTS = frozenset({"start_ts", "end_ts"})
_WRONG = {
    "timestamp": _DATES,
    "date": _INSTANTS,
    "timestamp_ntz": _INSTANTS,
}
"""By the type of a column, the parameters that stand for another moment wherever clocks do not show UTC."""
_ZONELESS = (
    exp.Column, exp.Identifier, exp.Placeholder, exp.Literal, exp.Var, exp.Paren, exp.DataType, exp.Cast,
    exp.Neg, exp.Add, exp.Sub, exp.Interval,
)  # fmt: skip
_ZONELESS_FUNCTIONS = frozenset((
    "add_months", "date", "date_add", "date_sub", "date_trunc", "dateadd", "timestamp", "to_date",
    "to_timestamp", "trunc",
))  # fmt: skip
"""What an expression may be made of and never move a time from one zone to another."""


def _inclusive_end(*, model: str, found: str, fix: str) -> DeclarationError:
    return DeclarationError(
        found=f"model '{model}' has `{found}`, which includes its end, but an interval's end is the "
        "first instant of the next one and never its own",
        do=f"write `{fix}`",
    )


def check_bounds(model: Model, upstreams: Mapping[str, Model | Source]) -> None:
    """Check every comparison of the query's filters with the interval's bounds.

    Args:
        model: any model; only incremental SQL ones are checked.
        upstreams: all that it reads, by name.

    Raises:
        DeclarationError: a bound is missing, is on another column, or includes the end.
        DeclarationError: a bound is a date where the grid or the column knows instants, or the reverse.
    """
    if not isinstance(model.logic, SqlQuery) or isinstance(model.kind, Full):
        return
    cuts = {up.name: up.time_column or upstreams[up.name].time_column for up in model.reads}
    types = {
        (name, column.name.lower()): canonical_type(column.dtype)
        for name, upstream in upstreams.items()
        for column in upstream.schema
    }
    bounding = _bounding(model, model.logic, cuts, types)
    if model.cadence.unit.is_subday:
        bounding -= _DATES
    for missing, parameters in (("start", _STARTS), ("end", _ENDS)):
        if not bounding & parameters:
            column = _declared(model, cuts.values())[0]
            raise DeclarationError(
                found=f"model '{model.name}' is incremental but its query has no {missing} bound",
                do=f"add `{_bounds_on(model, column, types)}` to its WHERE",
            )


def _bounds_on(model: Model, column: str, types: _Types) -> str:
    """Write the bounds that fit a column and the model's grid."""
    dtypes = {dtype for (_, name), dtype in types.items() if name == column.lower()}
    is_instant = any(_WRONG.get(dtype) == _DATES for dtype in dtypes)
    kind = "ts" if is_instant or model.cadence.unit.is_subday else "ds"
    return f"{column} >= :start_{kind} AND {column} < :end_{kind}"


def _bounding(
    model: Model,
    query: SqlQuery,
    cuts: Mapping[str, str | None],
    types: _Types,
) -> frozenset[str]:
    """Name the parameters that bound the query, each comparison checked.

    A parameter that merely occurs is enough for a calendar, which compares no column but has to end
    somewhere, and for a query that can't be analysed.
    """
    tree = query.analysis()
    comparisons = bounding_comparisons(tree) if tree is not None else None
    if tree is None or comparisons is None or not model.reads:
        return query.parameters()
    for between in bounded_betweens(tree):
        _check_between(model.name, between)
    bounds: set[str] = set()
    for comparison in comparisons:
        is_on_a_cut = _check_column(model, comparison, cuts, types)
        _check_types(model, comparison, types)
        if not is_on_a_cut:
            continue
        _check_ends(model.name, comparison)
        if comparison.sign in (">=", ">", "<"):
            bounds |= comparison.bounds & (_ENDS if comparison.sign == "<" else _STARTS)
    return frozenset(bounds)


def _declared(model: Model, cuts: Iterable[str | None]) -> tuple[str, ...]:
    """The columns that may be bounded: the upstreams' time columns, and the model's own."""
    return tuple(dict.fromkeys(name for name in (*cuts, model.time_column) if name is not None))


def _check_column(
    model: Model,
    comparison: BoundComparison,
    cuts: Mapping[str, str | None],
    types: _Types,
) -> bool:
    """Refuse another column than the declared one; return whether history is cut by the column.

    A column of an upstream that isn't cut (a `Full` one) may be compared with the interval
    freely: a price is valid from one day to another.
    """
    on_a_cut = False
    for column in comparison.columns:
        origins = [origin for origin in column.origins if cuts.get(origin.table, "") is not None]
        right = [_is_allowed(model, origin, cuts) for origin in origins]
        if right and not (any(right) if column.derived else all(right)):
            wrong = next(origin for origin, ok in zip(origins, right, strict=True) if not ok)
            declared = _allowed(model, wrong.table, cuts)
            raise DeclarationError(
                found=f"model '{model.name}' bounds its interval on '{wrong.column}', but its "
                f"upstreams are cut by {', '.join(declared)}",
                do=f"write `{_bounds_on(model, declared[0], types)}`; or, to cut a source by "
                f"'{wrong.column}', declare it once more, under another name, with "
                f"TimeColumns(event='{wrong.column}')",
            )
        on_a_cut = on_a_cut or bool(right)
    return on_a_cut


def _check_types(model: Model, comparison: BoundComparison, types: _Types) -> None:
    """Refuse dates on a grid of instants, and columns that are compared with the other kind of parameter.

    What a query computes from a time on the way, or by other functions than those of dates, is not followed: it
    may well move the time from zone to zone.
    """
    found = f"model '{model.name}' has `{_spark(comparison.written)}`"
    dates, cadence = comparison.bounds & _DATES, model.cadence
    if dates and cadence.unit.is_subday:
        raise DeclarationError(
            found=f"{found}, but :{min(dates)} is a date, the same for all cells of a day",
            expected=f"instants, since its cells are of one {cadence.unit.value}",
            do=f"write {_instead(dates)}",
        )
    if is_utc(cadence.tz) or not (_is_zoneless(comparison.compared, comparison.bound)):
        return
    for column in comparison.columns:
        for origin in () if column.derived else column.origins:
            dtype = types.get((origin.table, origin.column.lower()), "")
            wrong = comparison.bounds & _WRONG.get(dtype, frozenset())
            if wrong:
                kind = (
                    "a date, which begins at midnight in UTC there"
                    if wrong & _DATES
                    else "an instant"
                )
                raise DeclarationError(
                    found=f"{found}: '{origin.column}' is {dtype}, but :{min(wrong)} is {kind}, "
                    f"so rows around midnight in {cadence.tz} would be in no cell",
                    do=f"write {_instead(wrong)}",
                )


def _instead(parameters: Iterable[str]) -> str:
    """Name the parameters of the other kind."""
    other = {"ds": "ts", "ts": "ds"}
    return ", ".join(
        f":{edge}_{other[kind]} instead of :{edge}_{kind}"
        for edge, _, kind in (name.partition("_") for name in sorted(parameters))
    )


def _is_zoneless(*expressions: exp.Expr) -> bool:
    return all(
        node.name.lower() in _ZONELESS_FUNCTIONS
        if isinstance(node, exp.Anonymous)
        else isinstance(node, _ZONELESS)
        for each in expressions
        for node in each.walk()
    )


def _allowed(model: Model, table: str, cuts: Mapping[str, str | None]) -> tuple[str, ...]:
    cut = cuts.get(table)
    return _declared(model, cuts.values()) if cut is None else (cut,)


def _is_allowed(model: Model, origin: ColumnOrigin, cuts: Mapping[str, str | None]) -> bool:
    """Whether a column may be bounded; Spark takes no notice of case."""
    allowed = {name.lower() for name in _allowed(model, origin.table, cuts)}
    return origin.column.lower() in allowed


def _check_between(model: str, between: exp.Between) -> None:
    column, low, high = (between.args[name] for name in ("this", "low", "high"))
    if parameters_of(high) & _ENDS:
        fix = f"{_spark(column)} >= {_spark(low)} AND {_spark(column)} < {_bare(high)}"
        raise _inclusive_end(model=model, found=_spark(between), fix=fix)


def _check_ends(model: str, comparison: BoundComparison) -> None:
    """An end is exclusive and a start is not, whichever side they are written on."""
    column, bound = _spark(comparison.compared), comparison.bound
    if comparison.sign == "<=" and comparison.bounds & _ENDS:
        fix = f"{column} < {_bare(bound)}"
        raise _inclusive_end(model=model, found=_spark(comparison.written), fix=fix)
    alone = bound.unnest()
    if isinstance(alone, exp.Cast):
        alone = alone.this.unnest()
    if comparison.sign == ">" and isinstance(alone, exp.Placeholder) and alone.name in _STARTS:
        fix = f"{column} >= {_spark(bound)}"
        raise DeclarationError(
            found=f"model '{model}' has `{_spark(comparison.written)}`, which leaves out the first "
            "instant of every interval",
            do=f"write `{fix}`",
        )


def _bare(node: exp.Expr) -> str:
    """The end itself, for `<= :end - 1` is `< :end` however fine the column is."""
    return f":{min(parameters_of(node) & _ENDS)}"


def _spark(node: exp.Expr) -> str:
    return node.sql(dialect="spark")
