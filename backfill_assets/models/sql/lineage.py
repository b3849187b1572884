"""Column lineage: which upstream columns a SQL model reads, and where each output comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope, walk_in_scope

from backfill_assets.models.sql.query import SqlQuery, table_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.models.column import Column
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a model reads, by column.

    Attributes:
        reads: per upstream, the columns that anything in the query's answer depends on, filters,
            joins and grouping included, so that a change of any other column can't matter; an
            upstream that is missing here is read as a whole.
        outputs: per output column, the (upstream, column) pairs that its expression is made of.
    """

    reads: Mapping[str, frozenset[str]]
    outputs: Mapping[str, tuple[tuple[str, str], ...]]


OPAQUE = Lineage({}, {})
_SORTS = ("order", "sort", "cluster", "distribute")


def lineage_of(graph: Graph, model: Model) -> Lineage:
    """Trace a model's columns; a function, or SQL that can't be analysed, counts as reading all."""
    if not isinstance(model.logic, SqlQuery):
        return OPAQUE
    names = sorted(upstream.name for upstream in model.reads)
    return _traced(model.logic, tuple((name, graph.node(name).schema) for name in names))


@lru_cache(maxsize=1024)
def _traced(query: SqlQuery, upstreams: tuple[tuple[str, tuple[Column, ...]], ...]) -> Lineage:
    """Trace a query over the schemas of its upstreams; one command asks for that of a model many times."""
    analysis = query.analysis()
    if analysis is None:
        return OPAQUE
    try:
        tree = qualify(
            analysis,
            schema=cast("dict[str, object]", _schema(upstreams)),
            dialect="spark",
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
        )
        root = build_scope(tree)
        if root is None:
            return OPAQUE
        tables = set(query.tables())
        outputs = _outputs(root, tables)
        reads = _reads(root, tables)
        if reads and _may_lose_outputs(tree):
            needed = build_scope(pushdown_projections(tree))
            reads = _reads(needed, tables) if needed is not None else reads
    except SqlglotError:
        return OPAQUE
    schemas = dict(upstreams)
    declared = {name: _as_declared(schemas[name], columns) for name, columns in reads.items()}
    return Lineage(declared, outputs)


def _may_lose_outputs(tree: exp.Expr) -> bool:
    """Whether outputs of a CTE or subquery that no query reads can be left out.

    Not where it decides about rows: by EXPLODE, under EXCEPT or INTERSECT, with GROUP BY ALL, or where an
    inner query sorts: it may do so by number, by ALL, or by a field of an output.
    """
    inner = (query for query in tree.find_all(exp.Query) if query is not tree)
    if any(query.args.get(key) for query in inner for key in _SORTS):
        return False
    row_makers = (exp.UDTF, exp.Anonymous, exp.QueryTransform)
    if any(
        projection.find(*row_makers)
        for select in tree.find_all(exp.Select)
        for projection in select.selects
    ):
        return False
    if tree.find(exp.Except, exp.Intersect) is not None:
        return False
    if any(bool(clause.args.get("recursive")) for clause in tree.find_all(exp.With)):
        return False
    return not any(bool(clause.args.get("all")) for clause in tree.find_all(exp.Group))


def _as_declared(schema: tuple[Column, ...], columns: frozenset[str]) -> frozenset[str]:
    """Spell columns as the upstream does: qualification writes them in lower case."""
    declared = {column.name.lower(): column.name for column in schema}
    return frozenset(declared.get(name.lower(), name) for name in columns)


def _schema(
    upstreams: tuple[tuple[str, tuple[Column, ...]], ...],
) -> dict[str, dict[str, dict[str, str]]]:
    schema: dict[str, dict[str, dict[str, str]]] = {}
    for name, columns in upstreams:
        subject, table = name.split(".")
        schema.setdefault(subject, {})[table] = {each.name: each.dtype for each in columns}
    return schema


def _reads(root: Scope, tables: set[str]) -> dict[str, frozenset[str]]:
    """Collect columns by upstream; empty (every column is read) if the upstream of one is unknown.

    A query around others has the columns that they read of its sources, but not those in a CTE of theirs.
    """
    reads: dict[str, set[str]] = {table: set() for table in tables}
    scopes = list(root.traverse())
    sources = {name for scope in scopes for name in scope.sources}
    unknown = {id(each) for each in root.expression.find_all(exp.Column) if each.table in sources}
    for scope in scopes:
        if _reads_unnamed(scope):
            return {}
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if source is not None:
                unknown.discard(id(column))
            if not isinstance(source, exp.Table) or table_name(source) not in tables:
                continue
            if source.alias_column_names:
                return {}  # its columns have other names here
            reads[table_name(source)].add(column.name)
    return {} if unknown else {table: frozenset(columns) for table, columns in reads.items()}


def _reads_unnamed(scope: Scope) -> bool:
    """Whether a scope reads columns without naming them: a star, a pivot, a row as a whole.

    A star that is left after qualification is harmless inside count(*) only. A column without a
    table is one that no upstream declares, or a whole row by its table's alias; in a hint, which is
    not qualified, a name may be a table's.
    """
    stars = (not isinstance(star.parent, exp.Count) for star in scope.find_all(exp.Star))
    pivots = (True for _ in scope.find_all(exp.Pivot))
    hinted = (
        not column.table and column.name.lower() not in scope.sources
        for hint in scope.find_all(exp.Hint)
        for column in hint.find_all(exp.Column)
    )
    unqualified = (not column.table for column in scope.columns)
    return any(stars) or any(pivots) or any(hinted) or any(unqualified)


def _selects(scope: Scope) -> list[exp.Expr]:
    return scope.expression.selects if isinstance(scope.expression, exp.Query) else []


def _by_name(scope: Scope) -> bool:
    return bool(scope.expression.args.get("by_name"))


def _names(scope: Scope) -> list[str]:
    """Name the outputs by place; a union BY NAME has those of all its branches."""
    if _by_name(scope):
        names = (name for branch in scope.set_operation_scopes for name in _names(branch))
        return list(dict.fromkeys(names))
    return [select.alias_or_name for select in _selects(scope)]


def _outputs(root: Scope, tables: set[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        name: tuple(sorted(set(_sources(root, position, tables))))
        for position, name in enumerate(_names(root))
    }


def _sources(scope: Scope, position: int, tables: set[str]) -> Iterator[tuple[str, str]]:
    """Follow the output at a position through CTEs, subqueries and set operations.

    This ends: a recursive CTE reads itself as a scope of its first branch.
    """
    for branch in scope.set_operation_scopes:
        if _by_name(scope):
            yield from _named_sources(branch, _names(scope)[position], tables)
        else:
            yield from _sources(branch, position, tables)
    selects = _selects(scope)
    if scope.set_operation_scopes or position >= len(selects):
        return
    queries = {id(inner.expression): inner for inner in scope.subquery_scopes}
    for node in walk_in_scope(selects[position]):
        if isinstance(node, exp.Column):
            yield from _column_sources(scope, node, tables)
        elif id(node) in queries:
            yield from _sources(queries[id(node)], 0, tables)


def _named_sources(scope: Scope, name: str, tables: set[str]) -> Iterator[tuple[str, str]]:
    names = _names(scope)
    if name in names:
        yield from _sources(scope, names.index(name), tables)


def _column_sources(
    scope: Scope, column: exp.Column, tables: set[str]
) -> Iterator[tuple[str, str]]:
    source = scope.sources.get(column.table)
    if isinstance(source, exp.Table) and table_name(source) in tables:
        yield table_name(source), column.name
    elif isinstance(source, Scope):
        yield from _named_sources(source, column.name, tables)
