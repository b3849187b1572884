"""A query as a tree that can be held against another: no spelling left that changes no meaning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.query import SqlQuery

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_GENERATORS = frozenset({"inline_outer", "json_tuple", "variant_explode", "variant_explode_outer"})
_ROW_MAKERS = (exp.Explode, exp.UDTF, exp.Inline, exp.Stack, exp.QueryTransform)


def comparable(query: SqlQuery) -> exp.Query:
    """Parse a query and settle case, quotes, tautologies, ordinals and needless qualifiers."""
    tree = cast("exp.Query", simplify(query.tree(), dialect="spark"))
    aliases = {one.alias_or_name.lower() for one in tree.find_all(exp.Table, exp.Subquery)}
    for identifier in list(tree.find_all(exp.Identifier)):
        if not isinstance(identifier.parent, (exp.Column, exp.Dot)):
            _settle(identifier)
    for column in list(tree.find_all(exp.Column)):
        _settle_column(column, aliases)
    for table in tree.find_all(exp.Table):
        if not table.alias and isinstance(table.this, exp.Identifier):
            table.set("alias", exp.TableAlias(this=table.this.copy()))
    for select in tree.find_all(exp.Select):
        _resolve_ordinals(select)
        _drop_qualifier(select)
    return tree


def text_of(node: object) -> str:
    """Write a part of a tree; equal texts mean the same."""
    match node:
        case exp.Expr():
            return node.sql(dialect="spark", comments=False)
        case list():
            return ", ".join(text_of(one) for one in cast("list[object]", node))
        case None | False:
            return ""
        case _:
            return str(node)


def here(node: exp.Expr) -> Iterator[exp.Expr]:
    """Walk an expression without entering the queries inside it."""
    return node.walk(prune=lambda inner: inner is not node and isinstance(inner, exp.Query))


def output_name(projection: exp.Expr) -> str:
    """Name an output column; one without a name goes by its text."""
    return text_of(projection) if _is_unnamed(projection) else projection.alias_or_name.lower()


def is_star(projection: exp.Expr) -> bool:
    """Whether a projection stands for several columns."""
    return projection.is_star


def makes_rows(projection: exp.Expr) -> bool:
    """Whether a projection may give several rows for one, as EXPLODE does."""
    return any(
        isinstance(node, _ROW_MAKERS)
        or (isinstance(node, exp.Anonymous) and node.name.lower() in _GENERATORS)
        for node in here(projection)
    )


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression folds many rows into one (over a window it does not)."""
    return any(isinstance(one, exp.AggFunc) and not _runs_over(one) for one in here(node))


def is_unknown_call(node: exp.Expr) -> bool:
    """Whether it calls a function of which nothing but the name is known."""
    return any(isinstance(one, (exp.Anonymous, exp.AnonymousAggFunc)) for one in here(node))


def named_bare(node: exp.Expr, sources: frozenset[str]) -> Iterator[str]:
    """Name the columns that an expression reads without saying of which source."""
    for column in node.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if not set(parts[:-1]) & sources:
            yield parts[0].lower()


def _runs_over(function: exp.Expr) -> bool:
    """Whether a function is the one that a window runs."""
    parent = function.parent
    if isinstance(parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        return _runs_over(parent)
    return isinstance(parent, exp.Window) and parent.this is function


def _is_unnamed(projection: exp.Expr) -> bool:
    return not isinstance(projection, (exp.Alias, exp.Column, exp.Dot)) or projection.is_star


def _settle(identifier: exp.Identifier) -> None:
    name = identifier.name.lower()
    identifier.set("this", name)
    identifier.set("quoted", _PLAIN.fullmatch(name) is None)


def _settle_column(column: exp.Column, aliases: set[str]) -> None:
    """Settle the parts that name a source or a column; what follows may be the key of a map."""
    parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
    named = [number for number, part in enumerate(parts) if part.name.lower() in aliases]
    last = named[-1] + 1 if named and len(parts) > 1 else 0
    for part in parts[: last + 1]:
        _settle(part)
    for part in parts[last + 1 :]:
        part.set("quoted", _PLAIN.fullmatch(part.name.lower()) is None)


def _resolve_ordinals(select: exp.Select) -> None:
    """Write what GROUP BY 1 and ORDER BY 2 stand for, so that a new column shifts nothing."""
    outputs = select.selects
    group, order = select.args.get("group"), select.args.get("order")
    keys = list(group.expressions) if group else []
    keys += [one.this for one in order.expressions if isinstance(one, exp.Ordered)] if order else []
    for key in keys:
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(outputs):
            key.replace(outputs[int(key.name) - 1].unalias().copy())


def _drop_qualifier(select: exp.Select) -> None:
    """Take the only source's name off its columns, where no output could be meant instead."""
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return
    alias = source.this.alias_or_name
    parts = [*select.selects, select.args.get("where"), select.args.get("group")]
    for part in parts:
        for node in list(here(part)) if part is not None else ():
            if isinstance(node, exp.Column) and not node.is_star:
                _unqualify(node, alias)


def _unqualify(column: exp.Column, alias: str) -> None:
    if column.table == alias:
        column.set("table", None)
        column.set("db", None)
    elif column.db == alias and not column.catalog:
        column.set("db", None)  # a field of a struct: its column stays
