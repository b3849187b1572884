"""Find the comparisons of a query's filters with its interval, and the upstream columns in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from backfill_assets.models.sql.query import table_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNS: dict[type[exp.Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "="}
_NEGATED = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "=": "<>"}


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """A column of a table; the table is empty where it is unknown."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column that is compared, followed through CTEs and subqueries.

    Attributes:
        origins: the columns of tables that it comes from.
        derived: whether it was computed from them on the way, not only renamed.
    """

    origins: tuple[ColumnOrigin, ...]
    derived: bool


@dataclass(frozen=True, slots=True)
class BoundComparison:
    """One comparison, turned so that the interval's bound is on its right.

    Attributes:
        written: as it stands in the query.
        compared: its left side.
        sign: of the turned comparison.
        bound: its right side, with parameters.
        bounds: names of these parameters.
        columns: those that the left side is computed from.
    """

    written: exp.Expr
    compared: exp.Expr
    sign: str
    bound: exp.Expr
    bounds: frozenset[str]
    columns: tuple[ComparedColumn, ...]


def bounded_betweens(tree: exp.Expr) -> Iterator[exp.Between]:
    """Give every BETWEEN of the filters; it includes its end."""
    return (between for between in tree.find_all(exp.Between) if _filters(between))


def bounding_comparisons(tree: exp.Expr) -> list[BoundComparison] | None:
    """Give every comparison of the filters that has parameters on one side, names in small letters as Spark reads them.

    None where names can't be followed, as with two nested CTEs of one name.
    """
    try:
        scopes = traverse_scope(normalize_identifiers(tree.copy(), dialect="spark"))
    except SqlglotError:
        return None
    return [
        comparison
        for scope in scopes
        for node in walk_in_scope(scope.expression)
        if isinstance(node, tuple(_SIGNS)) and _filters(node)
        for comparison in _turned(scope, node)
    ]


def _filters(node: exp.Expr) -> bool:
    """Whether a condition decides which rows exist, not which values they hold."""
    clause = node.find_ancestor(
        exp.Case, exp.If, exp.Where, exp.Join, exp.Having, exp.Qualify, exp.Select
    )
    if isinstance(clause, exp.Where):
        return not isinstance(clause.parent, exp.Filter)
    return isinstance(clause, (exp.Join, exp.Having, exp.Qualify))


def _turned(scope: Scope, node: exp.Expr) -> Iterator[BoundComparison]:
    sign = _SIGNS[type(node)]
    left, right = node.args["this"], node.args["expression"]
    if parameters_of(left) and not parameters_of(right):
        left, right, sign = right, left, _MIRRORED[sign]
    if not parameters_of(right) or right.find(exp.Case, exp.If, exp.Select, *_SIGNS):
        return  # a bound is made of a parameter, not of a condition with one
    outer = node.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    if isinstance(outer, exp.Not):
        sign = _NEGATED[sign]
    columns = [*left.find_all(exp.Column), *right.find_all(exp.Column)]
    traced = tuple(_traced(scope, column) for column in columns)
    yield BoundComparison(node, left, sign, right, parameters_of(right), traced)


def parameters_of(node: exp.Expr) -> frozenset[str]:
    """Name the parameters in an expression, such as `start` of `:start`."""
    return frozenset(placeholder.name for placeholder in node.find_all(exp.Placeholder))


def _traced(scope: Scope, column: exp.Column) -> ComparedColumn:
    derived = False
    origins: list[ColumnOrigin] = []
    for origin, by_expression in _followed(scope, column, 0):
        origins.append(origin)
        derived = derived or by_expression
    return ComparedColumn(tuple(dict.fromkeys(origins)), derived)


_DEEPEST = 30  # CTEs on CTEs; a recursive one comes round for ever


def _followed(scope: Scope, column: exp.Column, depth: int) -> Iterator[tuple[ColumnOrigin, bool]]:
    """Follow a column to the tables that it comes from, and say whether it was computed."""
    inner = _projection(scope, column)
    if inner is None or depth == _DEEPEST:
        yield from ((ColumnOrigin(table, column.name), False) for table in _tables(scope, column))
        return
    source, projected = inner
    plain = projected.unalias()
    if isinstance(plain, exp.Column):
        yield from _followed(source, plain, depth + 1)
        return
    for each in plain.find_all(exp.Column):
        yield from ((origin, True) for origin, _ in _followed(source, each, depth + 1))


def _projection(scope: Scope, column: exp.Column) -> tuple[Scope, exp.Expr] | None:
    """The output of a CTE or subquery that a column names; None where it is a table's own."""
    for name, source in _named_sources(scope):
        if column.table not in ("", name) or not isinstance(source, Scope):
            continue
        first = source
        while first.set_operation_scopes:
            first = first.set_operation_scopes[0]
        for select in first.expression.selects if isinstance(first.expression, exp.Query) else ():
            if select.alias_or_name == column.name:
                return first, select
    return None


def _tables(scope: Scope, column: exp.Column) -> list[str]:
    tables = [
        table_name(source)
        for name, source in _named_sources(scope)
        if column.table in ("", name) and isinstance(source, exp.Table)
    ]
    return tables if len(tables) == 1 else [""]


def _named_sources(scope: Scope) -> Iterator[tuple[str, exp.Expr | Scope]]:
    """The sources of a scope, then those of the scopes around it (a correlated subquery)."""
    around: Scope | None = scope
    while around is not None:
        yield from ((name, source) for name, (_, source) in around.selected_sources.items())
        around = around.parent if around.is_subquery else None
