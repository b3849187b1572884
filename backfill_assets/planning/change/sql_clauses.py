"""Compare the clauses of a query that decide its row set: do they differ, or read a changed column?"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sqlglot import exp

from backfill_assets.planning.change.sql_tree import goes_by_order, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.planning.change.sql_edit import SqlEdit
    from backfill_assets.planning.change.sql_scope import Scope

_CLAUSES = {
    "distinct": "DISTINCT",
    "laterals": "a LATERAL VIEW",
    "where": "the filter (WHERE)",
    "group": "the grouping (GROUP BY)",
    "having": "the filter of groups (HAVING)",
    "qualify": "the filter of windows (QUALIFY)",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "sample": "the sample",
    "windows": "a WINDOW",
}
SORTS = ("order", "sort", "cluster", "distribute")
_APART = {"with_", "expressions", "from_", "joins", "hint", "this", "expression", *SORTS}


def other_clauses(old: exp.Expr, new: exp.Expr) -> Iterator[str]:
    """Name the clauses that differ."""
    keys = sorted({*old.args, *new.args} - _APART, key=[*_CLAUSES, *old.args, *new.args].index)
    other = [key for key in keys if text_of(old.args.get(key)) != text_of(new.args.get(key))]
    if other:
        yield f"changes {', '.join(_CLAUSES.get(key, key.upper()) for key in other)}"


def sorted_otherwise(old: exp.Expr, new: exp.Expr) -> bool:
    """Whether rows come in another order."""
    return any(text_of(old.args.get(key)) != text_of(new.args.get(key)) for key in SORTS)


def sorts_by_edited(new: exp.Expr, edit: SqlEdit, scope: Scope) -> bool:
    """Whether rows are sorted by what an edit of the outputs, or an edit below them, reaches.

    A number or ALL, where it still stands, may mean any output.
    """
    keys = [key for clause in SORTS for part in _parts(new, clause) for key in part.expressions]
    return any(scope.sees(key, edit) for key in keys) or (
        edit.shows and not all(key.find(exp.Column) for key in keys)
    )


def is_cut(query: exp.Expr) -> bool:
    """Whether the order of rows decides which of them are kept."""
    return any(query.args.get(key) for key in ("limit", "offset"))


def clause_that_sees(select: exp.Select, scope: Scope) -> str | None:
    """Name a clause, the same in both, that an edit below it reaches all the same."""
    cut = is_cut(select)
    for key in (*_CLAUSES, *(SORTS if cut else ())):
        if any(scope.sees(node) for node in _parts(select, key)):
            return _CLAUSES.get(key, "ORDER BY")
    if any(_join_sees(join, scope) for join in joins_of(select)):
        return "a JOIN"
    if scope.edited and _is_turned(select):
        return "a PIVOT"
    return None


def _is_turned(select: exp.Select) -> bool:
    """Whether a pivot follows joined tables: it groups by all their columns, wherever the tree has it."""
    places = (place for join in joins_of(select) for place in (join, join.this))
    return any(place.args.get("pivots") for place in places)


def clause_that_goes_by_order(select: exp.Select) -> str | None:
    """Name a clause that keeps other rows when rows with equal keys come in another order."""
    if is_cut(select):
        return "LIMIT"
    for key in ("having", "qualify"):
        if any(map(goes_by_order, _parts(select, key))):
            return _CLAUSES[key]
    return None


def _parts(select: exp.Expr, key: str) -> list[exp.Expr]:
    """The expressions of a clause; a clause that may occur several times is a list."""
    value: object = select.args.get(key)
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    return [part for part in listed if isinstance(part, exp.Expr)]


def _join_sees(join: exp.Join, scope: Scope) -> bool:
    if not isinstance(join.this, (exp.Table, exp.Subquery)) and scope.sees(join.this):
        return True  # a LATERAL, which reads the tables before it
    if join.method.upper() == "NATURAL" and scope.edited:
        return True
    using = {column.name.lower() for column in join.args.get("using") or ()}
    return any(using & source.touched for source in scope.sources.values()) or scope.sees(
        join.args.get("on")
    )


def joins_of(select: exp.Select) -> list[exp.Join]:
    """Give the joins of a select, in order."""
    joins: list[exp.Expr] = select.args.get("joins") or []
    return [join for join in joins if isinstance(join, exp.Join)]
