"""Check that an incremental SQL query cuts its interval on the right column, end exclusive.

Of the times that a row has (event, ingestion, update, effective, creation), history is cut by one,
which the upstream declares. A query that is bounded on another one puts late rows into the wrong
cell, or into none; that is the commonest wrong backfill there is, so such a model does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.kind import Full
from backfill_assets.models.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.models.model import Model

_STARTS = frozenset({"start_ds", "start_ts"})
_ENDS = frozenset({"end_ds", "end_ts"})


class UnboundedQueryError(BackfillAssetsError):
    """An incremental query does not bound its rows by the interval."""

    def __init__(self, *, model: str, missing: str, column: str) -> None:
        self.model = model
        super().__init__(
            f"model '{model}' is incremental but its query has no {missing} bound; add "
            f"`{column} >= :start_ds AND {column} < :end_ds` (or :start_ts / :end_ts) to its WHERE"
        )


class WrongTimeBoundError(BackfillAssetsError):
    """A query is bounded on another column than the one that history is cut by."""

    def __init__(self, *, model: str, column: str, declared: tuple[str, ...]) -> None:
        self.model, self.column, self.declared = model, column, declared
        super().__init__(
            f"model '{model}' bounds its interval on '{column}', but its upstreams are cut by "
            f"{', '.join(declared)}; write `{declared[0]} >= :start_ds AND {declared[0]} < "
            f":end_ds`, or declare Upstream(..., time_column='{column}')"
        )


class InclusiveEndError(BackfillAssetsError):
    """A query includes the end of its interval, which belongs to the next one."""

    def __init__(self, *, model: str, found: str, fix: str) -> None:
        self.model = model
        super().__init__(
            f"model '{model}' has `{found}`, which takes in the first instant of the next "
            f"interval: ends are exclusive; write `{fix}`"
        )


def check_bounds(model: Model, time_columns: Mapping[str, str | None]) -> None:
    """Check every comparison of the query with the interval's bounds.

    Args:
        model: any model; only incremental SQL ones are checked.
        time_columns: per upstream, the column that it is cut by.

    Raises:
        UnboundedQueryError, WrongTimeBoundError, InclusiveEndError: as they say.
    """
    if not isinstance(model.logic, SqlQuery) or isinstance(model.kind, Full):
        return
    declared = _declared(model, time_columns)
    tree = model.logic.tree()
    bounds = _with_between_split(model.name, tree)
    for comparison in bounds:
        _check_column(model.name, comparison, declared)
        _check_end(model.name, comparison)
    names = {p.name for comparison in bounds for p in comparison.find_all(exp.Placeholder)}
    for missing, wanted in (("start", _STARTS), ("end", _ENDS)):
        if not names & wanted:
            raise UnboundedQueryError(model=model.name, missing=missing, column=declared[0])


def _declared(model: Model, time_columns: Mapping[str, str | None]) -> tuple[str, ...]:
    """The columns that may be bounded: the upstreams' time columns, and the model's own."""
    ups = [up.time_column or time_columns.get(up.name) for up in model.reads]
    own = model.time_column
    return tuple(dict.fromkeys(name for name in (*ups, own) if name is not None))


def _with_between_split(model: str, tree: exp.Expr) -> list[exp.Binary]:
    for between in tree.find_all(exp.Between):
        if _bound_names(between) & _ENDS:
            column, low, high = between.this.sql(), between.args["low"], between.args["high"]
            raise InclusiveEndError(
                model=model,
                found=_spark(between),
                fix=f"{column} >= {_spark(low)} AND {column} < {_spark(high)}",
            )
    return list(_comparisons(tree))


def _comparisons(tree: exp.Expr) -> Iterator[exp.Binary]:
    for node in tree.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ):
        if _bound_names(node):
            yield node


def _check_column(model: str, comparison: exp.Binary, declared: tuple[str, ...]) -> None:
    for column in comparison.find_all(exp.Column):
        if column.name not in declared:
            raise WrongTimeBoundError(model=model, column=column.name, declared=declared)


def _check_end(model: str, comparison: exp.Binary) -> None:
    """An end is exclusive: `column < :end`, so `<=` (or `:end >=`) is a mistake."""
    left, right = comparison.left, comparison.right
    if isinstance(comparison, exp.LTE) and _bound_names(right) & _ENDS:
        fix = f"{_spark(left)} < {_spark(right)}"
    elif isinstance(comparison, exp.GTE) and _bound_names(left) & _ENDS:
        fix = f"{_spark(left)} > {_spark(right)}"
    else:
        return
    raise InclusiveEndError(model=model, found=_spark(comparison), fix=fix)


def _bound_names(node: exp.Expr) -> frozenset[str]:
    return frozenset(p.name for p in node.find_all(exp.Placeholder))


def _spark(node: exp.Expr) -> str:
    return node.sql(dialect="spark")
