"""Column lineage: which upstream columns a SQL model reads, and where each output comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope, walk_in_scope

from backfill_assets.models.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a model reads, by column.

    Attributes:
        reads: per upstream, the columns that occur anywhere in the query, so that a change of any
            other column can't matter; an upstream that is missing here is read as a whole.
        outputs: per output column, the (upstream, column) pairs that its expression is made of.
    """

    reads: Mapping[str, frozenset[str]]
    outputs: Mapping[str, tuple[tuple[str, str], ...]]


OPAQUE = Lineage({}, {})


def lineage_of(graph: Graph, model: Model) -> Lineage:
    """Trace a model's columns; a function, or SQL that can't be traced, counts as reading all."""
    if not isinstance(model.logic, SqlQuery):
        return OPAQUE
    try:
        tree = qualify(
            model.logic.tree(),
            schema=_schema(graph, model),
            dialect="spark",
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
        )
        root = build_scope(tree)
    except SqlglotError:
        return OPAQUE
    if root is None:
        return OPAQUE
    tables = set(model.logic.tables())
    return Lineage(_reads(root, tables), _outputs(root, tables))


def _schema(graph: Graph, model: Model) -> dict[str, dict[str, dict[str, str]]]:
    schema: dict[str, dict[str, dict[str, str]]] = {}
    for upstream in model.reads:
        subject, table = upstream.name.split(".")
        columns = {column.name: column.dtype for column in graph.node(upstream.name).schema}
        schema.setdefault(subject, {})[table] = columns
    return schema


def _reads(root: Scope, tables: set[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {table: set() for table in tables}
    for scope in root.traverse():
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table):
                found[_name(source)].add(column.name)
        if any(True for _ in scope.find_all(exp.Star)) and not _only_counts(scope):
            return {}
    return {table: frozenset(columns) for table, columns in found.items()}


def _only_counts(scope: Scope) -> bool:
    """A star that is left after qualification is harmless inside count(*) only."""
    return all(isinstance(star.parent, exp.Count) for star in scope.find_all(exp.Star))


def _outputs(root: Scope, tables: set[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    names = [select.alias_or_name for select in root.expression.selects]
    return {
        name: tuple(sorted(set(_sources(root, position, tables))))
        for position, name in enumerate(names)
    }


def _sources(scope: Scope, position: int, tables: set[str]) -> Iterator[tuple[str, str]]:
    """Follow the output at a position through CTEs, subqueries and set operations."""
    if scope.set_operation_scopes:
        for branch in scope.set_operation_scopes:
            yield from _sources(branch, position, tables)
        return
    selects = scope.expression.selects
    if position >= len(selects):
        return
    for node in walk_in_scope(selects[position]):
        if isinstance(node, exp.Column):
            yield from _column_sources(scope, node, tables)


def _column_sources(scope: Scope, column: exp.Column, tables: set[str]) -> Iterator[tuple[str, str]]:
    source = scope.sources.get(column.table)
    if isinstance(source, exp.Table) and _name(source) in tables:
        yield _name(source), column.name
    elif isinstance(source, Scope):
        names = [select.alias_or_name for select in source.expression.selects]
        if column.name in names:
            yield from _sources(source, names.index(column.name), tables)


def _name(table: exp.Table) -> str:
    return f"{table.db}.{table.name}" if table.db else table.name
