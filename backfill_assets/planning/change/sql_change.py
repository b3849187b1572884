"""Decide what an edit of a query can change: the row set, or only values of some output columns.

The trees of the old and the new query are compared side by side, inner queries first. Where no proof is
found, the row set counts as changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.models.sql.query import table_name
from backfill_assets.models.sql.sql_analysis import settled_text
from backfill_assets.planning.change.sql_clauses import (
    clause_that_goes_by_order,
    clause_that_sees,
    is_cut,
    joins_of,
    other_clauses,
    sorted_otherwise,
    sorts_by_edited,
)
from backfill_assets.planning.change.sql_edit import NO_EDIT, SqlEdit, of_rows
from backfill_assets.planning.change.sql_outputs import compare_outputs
from backfill_assets.planning.change.sql_scope import Scope
from backfill_assets.planning.change.sql_tree import comparable, is_star, output_name, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backfill_assets.models.sql.query import SqlQuery

_Edits = dict[str, SqlEdit]

NOT_ANALYSED = "edits SQL that the analysis does not hold completely"


def sql_change(old: SqlQuery, new: SqlQuery) -> SqlEdit:
    """Compare two queries; where an analysis is not complete, everything may differ."""
    if settled_text(old.sql) == settled_text(new.sql):
        return NO_EDIT
    before, after = comparable(old), comparable(new)
    if before is None or after is None:
        return of_rows(NOT_ANALYSED)
    return _query(before, after, {})


def sql_effect(query: SqlQuery, upstreams: Mapping[str, SqlEdit]) -> SqlEdit:
    """Follow differences of upstreams through a query that stays as it is.

    Args:
        query: the reader's.
        upstreams: by name, columns in the spelling of their declaration.
    """
    tree = comparable(query)
    if tree is None:
        return of_rows(NOT_ANALYSED)
    return _query(tree, tree.copy(), {name: edit.lowered() for name, edit in upstreams.items()})


def _query(old: exp.Expr, new: exp.Expr, edits: _Edits) -> SqlEdit:
    """Compare two queries, of which either may be in brackets."""
    if text_of(old) == text_of(new) and not _names_edited(new, edits):
        return NO_EDIT
    match old, new:
        case exp.Subquery(), exp.Subquery() if _only_brackets(old) and _only_brackets(new):
            return _query(old.this, new.this, edits)
        case exp.Select(), exp.Select():
            return _select(old, new, {**edits, **_ctes(old, new, edits)})
        case exp.SetOperation(), exp.SetOperation() if type(old) is type(new):
            return _set_operation(old, new, {**edits, **_ctes(old, new, edits)})
        case _:
            return of_rows("changes the shape of the query")


def _names_edited(node: exp.Expr, edits: _Edits) -> bool:
    tables = node.find_all(exp.Table)
    return any(edits.get(table_name(table), NO_EDIT).shows for table in tables)


def _only_brackets(query: exp.Subquery) -> bool:
    return not any(value for key, value in query.args.items() if key != "this")


def _ctes(old: exp.Expr, new: exp.Expr, outside: _Edits) -> dict[str, SqlEdit]:
    """Compare the CTEs of two queries by name, in order: each may read those before it.

    A name that an outer query defines as well means another thing once an inner one comes, goes or
    moves. So does one that goes here, where an outer or an inner query defines it now.
    """
    before = {cte.alias: cte for cte in _with(old)}
    after = {cte.alias: cte for cte in _with(new)}
    hidden = of_rows("defines a CTE in another place")
    if _hides_others(list(before), list(after), outside):
        return dict.fromkeys((*outside, *before, *after), hidden)
    recursive = any(
        bool(clause.args.get("recursive")) for clause in (_with_of(old), _with_of(new)) if clause
    )
    edits = dict.fromkeys(before.keys() - after.keys(), hidden)
    for name, cte in after.items():
        old_cte = before.get(name)
        if old_cte is None:
            continue
        edit = _inside(_query(old_cte.this, cte.this, {**outside, **edits}))
        renamed = text_of(old_cte.args["alias"]) != text_of(cte.args["alias"])
        opaque = recursive or bool(cte.args["alias"].args.get("columns"))
        if renamed or (opaque and edit.shows):
            edit = of_rows(f"changes {name}")
        edits[name] = edit
    return edits


def _hides_others(old: list[str], new: list[str], outside: _Edits) -> bool:
    if [name for name in old if name in new] != [name for name in new if name in old]:
        return True
    return bool({*old} ^ {*new}) and bool(({*old} ^ {*new}) & outside.keys())


def _with_of(query: exp.Expr) -> exp.Expr | None:
    return query.args.get("with_")


def _with(query: exp.Expr) -> list[exp.CTE]:
    with_ = _with_of(query)
    return (
        [expression for expression in with_.expressions if isinstance(expression, exp.CTE)]
        if with_
        else []
    )


def _set_operation(old: exp.SetOperation, new: exp.SetOperation, edits: _Edits) -> SqlEdit:
    left = _inside(_query(old.this, new.this, edits))
    right = _inside(_query(_named(old), _named(new), edits))
    reason = next(_set_reasons(old, new, left, right), None)
    if reason:
        return of_rows(reason)
    edit = NO_EDIT
    if left.shows or right.shows:
        both = None if new.args.get("by_name") else _side_by_side(new, left, right)
        edit = both or of_rows("changes the branches of a UNION ALL differently")
    edit = replace(edit, shuffled=left.shuffled or right.shuffled)
    return _in_order(old, new, edit, Scope({}, edits))


def _set_reasons(
    old: exp.SetOperation, new: exp.SetOperation, left: SqlEdit, right: SqlEdit
) -> Iterator[str]:
    yield from other_clauses(old, new)
    yield from _edited_rows((left, right))
    moved = any(side.shows or side.shuffled for side in (left, right))
    if is_cut(new) and (sorted_otherwise(old, new) or moved):
        yield "changes which rows LIMIT keeps"
    compares = bool(new.args.get("distinct")) or not isinstance(new, exp.Union)
    if compares and (left.shows or right.shows):
        yield f"changes columns under {type(new).__name__.upper()}, which compares whole rows"


def _edited_rows(edits: Iterable[SqlEdit]) -> Iterator[str]:
    for edit in edits:
        if edit.rows:
            yield "; ".join(edit.why) or "reads rows that change"


def _inside(edit: SqlEdit) -> SqlEdit:
    """Give an edit as the query around it sees it; that query may depend on the order of rows, and on any column."""
    if edit.spread:
        return of_rows("; ".join(edit.why))
    return of_rows("sorts rows that a query around it may go by") if edit.reordered else edit


def _named(operation: exp.SetOperation) -> exp.Expr:
    """The second branch with its bare outputs renamed to the first one's, as UNION names them."""
    branch, names = operation.expression.copy(), _names(operation.this) or []
    if isinstance(branch, exp.Select) and len(branch.selects) == len(names):
        for name, projection in zip(names, branch.selects, strict=True):
            if not isinstance(projection, exp.Alias) and not is_star(projection):
                projection.replace(exp.alias_(projection.copy(), name, quoted=True))
    return branch


def _side_by_side(new: exp.SetOperation, left: SqlEdit, right: SqlEdit) -> SqlEdit | None:
    """Join the edits of two branches by place; None when the places don't match."""
    mine, theirs = _names(new.this), _names(_named(new))
    if mine is None or theirs is None or len(mine) != len(theirs):
        return None
    if left.removed or left.moved or right.removed or right.moved:
        return None
    pairs = list(zip(mine, theirs, strict=True))
    if any((a in left.added) != (b in right.added) for a, b in pairs):
        return None
    changed = frozenset(a for a, b in pairs if a in left.changed or b in right.changed)
    why = tuple(dict.fromkeys((*left.why, *right.why)))
    return SqlEdit(changed=changed, added=left.added, why=why)


def _names(query: exp.Expr) -> list[str] | None:
    """The outputs of a query by place; None when a star hides them."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    selects = query.selects if isinstance(query, exp.Query) else []
    names = [output_name(projection) for projection in selects]
    hidden = any(map(is_star, selects)) or len(set(names)) < len(names)
    return None if hidden or not names else names


def _select(old: exp.Select, new: exp.Select, edits: _Edits) -> SqlEdit:
    sources = _by_alias(_sources(old, new, edits))
    scope = Scope(sources, edits)
    if _hints_otherwise(old, new, scope):
        scope = Scope({**sources, "<hint>": SqlEdit(shuffled=True)}, edits)
    reason = next(_row_reasons(old, new, scope), None)
    if reason:
        return of_rows(reason)
    return _in_order(old, new, compare_outputs(old, new, scope), scope)


def _hints_otherwise(old: exp.Select, new: exp.Select, scope: Scope) -> bool:
    """Whether Spark may take the rows in another order: a hint partitions them, or chooses how they are joined."""
    hint = new.args.get("hint")
    return text_of(old.args.get("hint")) != text_of(hint) or scope.sees(hint)


def _in_order(old: exp.Expr, new: exp.Expr, edit: SqlEdit, scope: Scope) -> SqlEdit:
    """Add to an edit of a query's outputs what it does to the order of its rows."""
    if edit.rows:
        return edit
    if sorted_otherwise(old, new):
        return replace(edit, reordered=True, why=(*edit.why, "sorts rows otherwise"))
    return replace(edit, shuffled=edit.shuffled or sorts_by_edited(new, edit, scope))


def _row_reasons(old: exp.Select, new: exp.Select, scope: Scope) -> Iterator[str]:
    """Say why the row set may differ, whatever columns are selected."""
    yield from other_clauses(old, new)
    yield from _edited_rows(scope.sources.values())
    seen = clause_that_sees(new, scope)
    if seen:
        yield f"{seen} uses a column that changes"
    if is_cut(new) and sorted_otherwise(old, new):
        yield "changes which rows LIMIT keeps"
    if scope.shuffled and (clause := clause_that_goes_by_order(new)):
        yield f"takes rows in another order, and {clause} goes by it"


def _by_alias(sources: Iterable[tuple[str, SqlEdit]]) -> dict[str, SqlEdit]:
    """Key the edits in sources by alias; of two sources with one alias, any column may be the edited one's."""
    edits: dict[str, SqlEdit] = {}
    for alias, edit in sources:
        shared = edits.get(alias, NO_EDIT) not in (NO_EDIT, edit)
        edits[alias] = of_rows(f"edits one of several sources named {alias}") if shared else edit
    return edits


def _sources(old: exp.Select, new: exp.Select, edits: _Edits) -> Iterator[tuple[str, SqlEdit]]:
    """Compare FROM and the joins by place; how they are joined must not differ."""
    before, after = joins_of(old), joins_of(new)
    if len(before) != len(after):
        yield "<joins>", of_rows("joins other tables")
        return
    for one, other in zip(before, after, strict=True):
        if _around(one) != _around(other):
            yield "<join>", of_rows("joins in another way")
    pairs = [(_first(old), _first(new))]
    pairs += [(one.this, other.this) for one, other in zip(before, after, strict=True)]
    for number, (one, other) in enumerate(pairs):
        if one is not None and other is not None:
            yield other.alias_or_name or f"<{number}>", _source(one, other, edits)
        elif one is not other:
            yield "<from>", of_rows("reads another table")


def _first(select: exp.Select) -> exp.Expr | None:
    from_: exp.Expr | None = select.args.get("from_")
    return from_.this if from_ else None


def _around(source: exp.Join | exp.Subquery) -> str:
    """Write all of a join, or of a query in brackets, but what stands inside."""
    return "; ".join(
        f"{key}={text_of(value)}"
        for key, value in sorted(source.args.items())
        if key != "this" and value
    )


def _source(old: exp.Expr, new: exp.Expr, edits: _Edits) -> SqlEdit:
    match old, new:
        case exp.Subquery(), exp.Subquery() if _around(old) == _around(new):
            edit = _inside(_query(old.this, new.this, edits))
        case exp.Table(), exp.Table() if text_of(old) == text_of(new):
            edit = edits.get(table_name(new), NO_EDIT)
            inner = [table for table in new.find_all(exp.Table) if table is not new]
            if any(_names_edited(table, edits) for table in inner):
                edit = of_rows(f"joins {new.alias_or_name} with what changes")
        case _ if text_of(old) == text_of(new) and not _names_edited(new, edits):
            edit = NO_EDIT
        case _:
            edit = of_rows("reads another table, or in another way")
    if edit.shows and not edit.rows and _reshapes(new):
        return of_rows("renames or turns columns that change")
    return edit


def _reshapes(source: exp.Expr) -> bool:
    """Whether columns get other names or places on the way in, as by a pivot."""
    alias = source.args.get("alias")
    renamed = bool(alias and alias.args.get("columns"))
    return renamed or any(source.args.get(key) for key in ("pivots", "joins", "laterals"))
