"""A query as a tree that can be compared with another, without spelling that changes no meaning."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from backfill_assets.models.sql.sql_analysis import lossless_tree, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.models.sql.query import SqlQuery

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
GENERATORS = frozenset(
    {
        "collations", "explode", "explode_outer", "inline", "inline_outer", "json_tuple",
        "posexplode", "posexplode_outer", "python_worker_logs", "range", "sql_keywords", "stack",
        "variant_explode", "variant_explode_outer",
    }
)  # fmt: skip
_ROW_MAKERS = (exp.UDTF, exp.QueryTransform)

EXACT_AGGREGATES = frozenset(
    {
        "any", "approx_count_distinct", "avg", "bit_and", "bit_or", "bit_xor", "bool_and",
        "bool_or", "count", "count_if", "every", "grouping", "grouping_id", "max", "mean",
        "median", "min", "percentile", "some", "sum", "try_avg", "try_sum",
    }
)  # fmt: skip
"""Spark's aggregates whose value no order of rows can change."""

ORDERED_AGGREGATES = frozenset(
    {
        "any_value", "approx_percentile", "approx_top_k", "approx_top_k_accumulate",
        "approx_top_k_combine", "array_agg", "bitmap_and_agg", "bitmap_construct_agg",
        "bitmap_or_agg", "collect_list", "collect_set", "corr", "count_min_sketch", "covar_pop",
        "covar_samp", "first", "first_value", "histogram_numeric", "hll_sketch_agg",
        "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float",
        "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "kurtosis",
        "last", "last_value", "listagg", "max_by", "measure", "min_by", "mode",
        "percentile_approx", "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy",
        "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
        "regr_syy", "schema_of_variant_agg", "skewness", "std", "stddev", "stddev_pop",
        "stddev_samp", "string_agg", "theta_intersection_agg", "theta_sketch_agg",
        "theta_union_agg", "tuple_intersection_agg_double", "tuple_intersection_agg_integer",
        "tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double",
        "tuple_union_agg_integer", "var_pop", "var_samp", "variance", "vector_avg", "vector_sum",
    }
)  # fmt: skip
"""Spark's other aggregates: the order of rows may show in their values."""

_AGGREGATES = EXACT_AGGREGATES | ORDERED_AGGREGATES
_RANKS = frozenset({"cume_dist", "dense_rank", "percent_rank", "rank"})


def comparable(query: SqlQuery) -> exp.Query | None:
    """Parse a query and settle names of tables, quotes, tautologies, ordinals and qualifiers.

    A column, a field or an alias keeps its case: it may name an output. None where the analysis is
    not known to hold all of the text.
    """
    tree = lossless_tree(query.sql)
    if tree is None or _names_by_spelling(tree):
        return None
    _settle_names(tree)
    for join in tree.find_all(exp.Join):
        if join.kind == ("OUTER" if join.side else "INNER"):
            join.set("kind", None)
    for select in tree.find_all(exp.Select):
        _settle_filters(select)
        _resolve_ordinals(select)
        _drop_qualifier(select)
    return tree


def _names_by_spelling(tree: exp.Query) -> bool:
    """Whether the name that Spark gives an output may become a value, and is not known.

    Of ``5L`` and ``CAST(5 AS BIGINT)``, which are one tree, it makes two names.
    """
    unnamed = (
        projection
        for select in tree.find_all(exp.Select)
        for projection in select.selects
        if is_unnamed(projection)
    )
    spelled = (cast for each in unnamed for cast in each.find_all(exp.Cast))
    return any(isinstance(cast.this, exp.Literal) for cast in spelled) and any(
        not isinstance(star.parent, (exp.Select, exp.Count)) for star in tree.find_all(exp.Star)
    )


def text_of(node: object) -> str:
    """Write a part of a tree; equal texts mean the same."""
    match node:
        case exp.Expr():
            return written(node)
        case list():
            return ", ".join(text_of(item) for item in cast("list[object]", node))
        case None | False:
            return ""
        case _:
            return str(node)


def here(node: exp.Expr) -> Iterator[exp.Expr]:
    """Walk an expression without entering the queries inside it."""
    return node.walk(prune=lambda inner: inner is not node and isinstance(inner, exp.Query))


def output_name(projection: exp.Expr) -> str:
    """Name an output column; one without a name goes by its text."""
    return text_of(projection) if is_unnamed(projection) else projection.alias_or_name.lower()


def is_unnamed(projection: exp.Expr) -> bool:
    """Whether Spark names what a projection gives: CAST(x AS INT) is x, and arr[0].x is `arr[0].x`."""
    return not isinstance(projection, (exp.Alias, exp.Column)) or projection.is_star


def is_star(projection: exp.Expr) -> bool:
    """Whether a projection stands for several columns."""
    return projection.is_star


def makes_rows(projection: exp.Expr) -> bool:
    """Whether a projection may give several rows for one, as EXPLODE does."""
    return any(
        isinstance(node, _ROW_MAKERS) or _call_name(node) in GENERATORS for node in here(projection)
    )


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression folds many rows into one (over a window it does not)."""
    return any(_is_aggregate(inner) and not _runs_over(inner) for inner in here(node))


def groups_by_nothing(node: exp.Expr) -> bool:
    """Whether GROUP BY ALL takes no grouping from a projection: its columns are all folded."""
    return aggregates(node) and not any(
        isinstance(inner, (exp.Window, exp.Query, exp.Star))
        or (isinstance(inner, exp.Column) and not _is_folded(inner, node))
        for inner in node.walk()
        if not isinstance(inner.parent, exp.Count)
    )


def may_shuffle(projection: exp.Expr) -> bool:
    """Whether a projection may make Spark take the rows in another order."""
    return any(
        isinstance(inner, (exp.Window, exp.Query)) or _is_aggregate(inner)
        for inner in projection.walk()
    )


def goes_by_order(node: exp.Expr) -> bool:
    """Whether the order of rows, ties included, may show in the value of an expression."""
    return any(_goes_by_order(inner) for inner in node.walk())


def is_unknown_call(node: exp.Expr) -> bool:
    """Whether it calls a function of which only the name is known."""
    return any(isinstance(inner, (exp.Anonymous, exp.AnonymousAggFunc)) for inner in here(node))


def named_bare(nodes: Iterator[exp.Expr], sources: frozenset[str]) -> Iterator[str]:
    """Name the columns among some nodes that are read without saying of which source."""
    for node in nodes:
        parts = parts_of(node) if isinstance(node, exp.Column) else []
        if parts and not set(parts[:-1]) & sources and not _is_parameter(node, parts[0]):
            yield parts[0].lower()


def parts_of(column: exp.Column) -> list[str]:
    """Give a column's name part by part, as it is written: with a source's name that was left out."""
    return [*column.meta.get(_LEFT_OUT, ()), *(part.name for part in column.parts)]


_LEFT_OUT = "left out"


def _is_parameter(node: exp.Expr, name: str) -> bool:
    """Whether a name is that of a parameter of the lambda around it, in whatever case."""
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if name.lower() in (parameter.name.lower() for parameter in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _call_name(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, (exp.AggFunc, exp.Any)) or _call_name(node) in _AGGREGATES


def _is_folded(column: exp.Expr, top: exp.Expr) -> bool:
    """Whether a column stands inside an aggregate."""
    node = column
    while node is not top and node.parent is not None:
        node = node.parent
        if _is_aggregate(node):
            return True
    return False


def _goes_by_order(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Window):
        return _call_name(node) in ORDERED_AGGREGATES
    function = node.this
    by_value = isinstance(function, exp.AggFunc) or _call_name(function) in _RANKS
    spec = node.args.get("spec")
    named = node.args.get("alias") is not None
    return not by_value or named or (spec is not None and spec.args.get("kind") == "ROWS")


def _runs_over(function: exp.Expr) -> bool:
    """Whether a function is the one that a window runs."""
    parent = function.parent
    if isinstance(parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        return parent.this is function and _runs_over(parent)
    return isinstance(parent, exp.Window) and parent.this is function


def _settle_names(tree: exp.Query) -> None:
    """Write the names of tables in lower case, and each table's alias out."""
    aliases = {table.alias_or_name.lower() for table in tree.find_all(exp.Table, exp.Subquery)}
    for identifier in list(tree.find_all(exp.Identifier)):
        if _names_a_table(identifier):
            identifier.set("this", identifier.name.lower())
        # `NULL` in quotes is a column; written without them it would be the literal.
        name = identifier.name if identifier.quoted else identifier.name.lower()
        identifier.set("quoted", _PLAIN.fullmatch(name) is None)
    for column in list(tree.find_all(exp.Column)):
        _settle_qualifiers(column, aliases)
    for table in tree.find_all(exp.Table):
        if not table.alias and isinstance(table.this, exp.Identifier):
            table.set("alias", exp.TableAlias(this=table.this.copy()))


def _names_a_table(identifier: exp.Identifier) -> bool:
    parent = identifier.parent
    return isinstance(parent, exp.Table) or (
        isinstance(parent, exp.TableAlias) and identifier.arg_key == "this"
    )


def _settle_qualifiers(column: exp.Column, aliases: set[str]) -> None:
    """Settle the parts of a column that name a source; what follows may be a field's name."""
    parts = [part for part in column.parts[:-1] if isinstance(part, exp.Identifier)]
    for number, part in enumerate(parts):
        if part.name.lower() in aliases:
            for qualifier in parts[: number + 1]:
                qualifier.set("this", qualifier.name.lower())


def _settle_filters(select: exp.Select) -> None:
    """Take brackets off conditions that AND joins, and conditions that always hold out of WHERE."""
    for key in ("where", "having", "qualify"):
        clause = select.args.get(key)
        if clause is None:
            continue
        conditions = list(_conjuncts(clause.this))
        if key == "where":
            conditions = [condition for condition in conditions if not _always_holds(condition)]
        if conditions:
            clause.set("this", _joined(conditions))
        else:
            select.set(key, None)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.this)
        yield from _conjuncts(condition.expression)
    elif isinstance(condition, exp.Paren) and isinstance(
        condition.unnest(), (exp.And, *_COMPARISONS)
    ):
        yield from _conjuncts(condition.unnest())
    else:
        yield condition


def _joined(conditions: list[exp.Expr]) -> exp.Expr:
    joined, *rest = (condition.copy() for condition in conditions)
    for condition in rest:
        joined = exp.And(this=joined, expression=condition)
    return joined


def _always_holds(condition: exp.Expr) -> bool:
    """TRUE, or two whole numbers that compare so."""
    if isinstance(condition, exp.Boolean):
        return bool(condition.this)
    sides = (condition.this, condition.args.get("expression"))
    if not all(isinstance(side, exp.Literal) and side.is_int for side in sides):
        return False
    holds = _HOLDS.get(type(condition))
    left, right = (int(side.name) for side in cast("tuple[exp.Literal, exp.Literal]", sides))
    return holds is not None and holds(left, right)


_HOLDS: dict[type[exp.Expr], Callable[[int, int], bool]] = {
    exp.EQ: operator.eq,
    exp.GT: operator.gt,
    exp.LT: operator.lt,
}


def ordinals(select: exp.Select) -> list[exp.Expr]:
    """The numbers that stand for outputs in GROUP BY, ROLLUP and the like, ORDER BY and SORT BY."""
    clauses = [select.args.get(key) for key in ("group", "order", "sort", "cluster")]
    literals = (literal for clause in clauses if clause for literal in clause.find_all(exp.Literal))
    return [literal for literal in literals if literal.is_int and _is_key(literal)]


_AROUND_KEYS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren, exp.Ordered)
_KEYED = (exp.Group, exp.Order, exp.Sort, exp.Cluster)


def _is_key(literal: exp.Expr) -> bool:
    parent = literal.parent
    while isinstance(parent, _AROUND_KEYS):
        parent = parent.parent
    return isinstance(parent, _KEYED) and isinstance(parent.parent, exp.Select)


def _resolve_ordinals(select: exp.Select) -> None:
    """Replace GROUP BY 1 and ORDER BY 2 by their expressions, so that a new column shifts none."""
    outputs = select.selects
    for key in ordinals(select):
        number = int(key.name)
        before = outputs[:number]
        if 0 < number <= len(outputs) and not any(map(is_star, before)):
            meant = _meant(key, before[-1], outputs)
            if meant is not None:
                key.replace(meant)


def _meant(key: exp.Expr, output: exp.Expr, outputs: list[exp.Expr]) -> exp.Expr | None:
    """Where rows are grouped, a name is a source's column; where they are sorted, an output's.

    CLUSTER BY 1 sorts by an output, and distributes rows by the number: no name means both. Nor does a
    name that several outputs have.
    """
    clause = key.find_ancestor(*_KEYED)
    if isinstance(clause, exp.Group):
        return output.unalias().copy()
    if list(map(output_name, outputs)).count(output_name(output)) > 1:
        return None
    if isinstance(output, (exp.Alias, exp.Column)) and not isinstance(clause, exp.Cluster):
        return exp.column(exp.to_identifier(output.alias_or_name))
    return None


def _drop_qualifier(select: exp.Select) -> None:
    """Remove the only source's name from its columns, where without it they mean the same.

    What is left may be the field of a struct that is named like the source. Then the field's name alone may be
    another output's, or that of a column of the query around this one.
    """
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return
    if isinstance(select.find_ancestor(*_AROUND_A_QUERY), (exp.Select, exp.Lateral)):
        return
    alias, outputs = source.this.alias_or_name, set[str]()
    _unqualify(select.args.get("where"), alias, outputs)
    for projection in select.selects:
        _unqualify(projection, alias, outputs)
        column, name = projection.unalias(), output_name(projection)
        if not isinstance(column, exp.Column) or column.table or column.name.lower() != name:
            outputs.add(name)
    _unqualify(select.args.get("group"), alias, outputs)


_AROUND_A_QUERY = (exp.Select, exp.From, exp.Join, exp.CTE, exp.Lateral)


def _unqualify(part: exp.Expr | None, alias: str, outputs: set[str]) -> None:
    for node in list(here(part)) if part is not None else ():
        if isinstance(node, exp.Column) and not node.is_star and not node.find_ancestor(exp.Lambda):
            _leave_out(node, alias, outputs)  # in a lambda, its parameter would hide the column


def _leave_out(column: exp.Column, alias: str, outputs: set[str]) -> None:
    """Leave out the source's name, where the next part is no name of an output that may be meant as well."""
    parts = [part.name for part in column.parts]
    if alias not in parts[:-1] or parts[parts.index(alias) + 1].lower() in outputs:
        return
    if column.table == alias:
        column.set("table", None)
        column.set("db", None)
    elif column.db == alias and not column.catalog:
        column.set("db", None)  # a field of a struct: its column stays
    column.meta[_LEFT_OUT] = parts[: len(parts) - len(column.parts)]
