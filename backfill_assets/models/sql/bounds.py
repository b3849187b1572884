"""Check that an incremental SQL query cuts its interval on the right column, end exclusive.

A row may have several times (event, ingestion, update, effective, creation). The upstream declares
the one that cuts its history. A query that is bounded on another one puts late rows into the wrong
cell, or into none. This is the commonest error in backfills, so such a model does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.errors import DeclarationError
from backfill_assets.models.kind import Full
from backfill_assets.models.sql.bound_comparisons import (
    BoundComparison,
    bounded_betweens,
    bounding_comparisons,
    parameters_of,
)
from backfill_assets.models.sql.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.models.model import Model

_STARTS = frozenset({"start_ds", "start_ts"})
_ENDS = frozenset({"end_ds", "end_ts"})


def _inclusive_end(*, model: str, found: str, fix: str) -> DeclarationError:
    return DeclarationError(
        found=f"model '{model}' has `{found}`, which includes its end, but an interval's end is the "
        "first instant of the next one and never its own",
        do=f"write `{fix}`",
    )


def check_bounds(model: Model, time_columns: Mapping[str, str | None]) -> None:
    """Check every comparison of the query's filters with the interval's bounds.

    Args:
        model: any model; only incremental SQL ones are checked.
        time_columns: per upstream, the column that it is cut by.

    Raises:
        DeclarationError: a bound is missing, is on another column, or includes the end.
    """
    if not isinstance(model.logic, SqlQuery) or isinstance(model.kind, Full):
        return
    cuts = {up.name: up.time_column or time_columns.get(up.name) for up in model.reads}
    bounding = _bounding(model, model.logic, cuts)
    for missing, parameters in (("start", _STARTS), ("end", _ENDS)):
        if not bounding & parameters:
            column = _declared(model, cuts.values())[0]
            raise DeclarationError(
                found=f"model '{model.name}' is incremental but its query has no {missing} bound",
                do=f"add `{column} >= :start_ds AND {column} < :end_ds` (or :start_ts / :end_ts) to "
                "its WHERE",
            )


def _bounding(model: Model, query: SqlQuery, cuts: Mapping[str, str | None]) -> frozenset[str]:
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
        if not _check_column(model, comparison, cuts):
            continue
        _check_ends(model.name, comparison)
        if comparison.sign in (">=", ">", "<"):
            bounds |= comparison.bounds & (_ENDS if comparison.sign == "<" else _STARTS)
    return frozenset(bounds)


def _declared(model: Model, cuts: Iterable[str | None]) -> tuple[str, ...]:
    """The columns that may be bounded: the upstreams' time columns, and the model's own."""
    return tuple(dict.fromkeys(name for name in (*cuts, model.time_column) if name is not None))


def _check_column(
    model: Model, comparison: BoundComparison, cuts: Mapping[str, str | None]
) -> bool:
    """Refuse another column than the declared one; return whether history is cut by the column.

    A column of an upstream that isn't cut (a `Full` one) may be compared with the interval
    freely: a price is valid from one day to another.
    """
    on_a_cut = False
    for column in comparison.columns:
        origins = [origin for origin in column.origins if cuts.get(origin.table, "") is not None]
        right = [origin.column in _allowed(model, origin.table, cuts) for origin in origins]
        if right and not (any(right) if column.derived else all(right)):
            wrong = next(origin for origin, ok in zip(origins, right, strict=True) if not ok)
            declared = _allowed(model, wrong.table, cuts)
            raise DeclarationError(
                found=f"model '{model.name}' bounds its interval on '{wrong.column}', but its "
                f"upstreams are cut by {', '.join(declared)}",
                do=f"write `{declared[0]} >= :start_ds AND {declared[0]} < :end_ds`, or declare "
                f"Upstream(..., time_column='{wrong.column}')",
            )
        on_a_cut = on_a_cut or bool(right)
    return on_a_cut


def _allowed(model: Model, table: str, cuts: Mapping[str, str | None]) -> tuple[str, ...]:
    cut = cuts.get(table)
    return _declared(model, cuts.values()) if cut is None else (cut,)


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
