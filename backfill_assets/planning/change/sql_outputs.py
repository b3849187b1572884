"""Decide what an edit of a SELECT's projections can change, if its other clauses are equal."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.planning.change.sql_clauses import (
    SORTS,
    clause_that_goes_by_order,
    is_cut,
)
from backfill_assets.planning.change.sql_edit import SqlEdit, of_rows
from backfill_assets.planning.change.sql_tree import (
    aggregates,
    goes_by_order,
    groups_by_nothing,
    here,
    is_star,
    is_unknown_call,
    is_unnamed,
    makes_rows,
    may_shuffle,
    named_bare,
    ordinals,
    output_name,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.planning.change.sql_scope import Scope

_Outputs = dict[str, exp.Expr]


def compare_outputs(old: exp.Select, new: exp.Select, scope: Scope) -> SqlEdit:
    """Compare projections by name; `scope` has the edits below them."""
    before, after = _by_name(old), _by_name(new)
    if before is None or after is None:
        return of_rows("changes a query in which two columns share a name")
    edit = _edit(before, after, scope)
    if any(scope.expands(star, edit) for star in filter(is_star, after.values())):
        return of_rows("expands a struct that changes")
    if not edit.shows:
        return replace(edit, shuffled=scope.shuffled)
    reason = next(_row_reasons(new, before, after, edit, scope), None)
    return edit if reason is None else of_rows("; ".join(edit.why) + reason)


def _by_name(select: exp.Select) -> _Outputs | None:
    names = {output_name(projection): projection for projection in select.selects}
    return names if len(names) == len(select.selects) else None


def _edit(before: _Outputs, after: _Outputs, scope: Scope) -> SqlEdit:
    """Sort the outputs into changed, added, removed and moved."""
    added = frozenset(after.keys() - before.keys())
    removed = frozenset(before.keys() - after.keys())
    moved = _moved([name for name in before if name in after], [n for n in after if n in before])
    concerned = [before[n] for n in removed] + [after[n] for n in added]
    changed = _changed(before, after, scope, (added, removed, moved))
    concerned += [projection for name in changed for projection in (before[name], after[name])]
    shuffled = scope.shuffled or any(map(may_shuffle, concerned))
    if shuffled:
        changed |= {
            name
            for name, projection in after.items()
            if name in before and goes_by_order(projection)
        }
    spread = any(map(is_star, concerned)) or any(is_unnamed(before[n]) for n in removed | changed)
    for name in after.keys() & before.keys():
        if is_star(after[name]):
            changed, added, removed, moved = _through_star(
                after[name], scope, (changed - {name}, added, removed, moved)
            )
    lines = (
        ("adds", added),
        ("drops", removed),
        ("moves", moved),
        ("computes otherwise:", changed),
    )
    why = tuple(f"{verb} {', '.join(sorted(names))}" for verb, names in lines if names)
    return SqlEdit(
        changed=changed,
        added=added,
        removed=removed,
        moved=moved,
        spread=spread,
        shuffled=shuffled,
        why=why,
    )


_Sets = tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]


def _through_star(star: exp.Expr, scope: Scope, sets: _Sets) -> _Sets:
    """The edits in its sources that a star passes on."""
    through = list(_behind(star, scope))
    changed, added, removed, moved = sets
    return (
        changed.union(*(edit.changed for edit in through)),
        added.union(*(edit.added for edit in through)),
        removed.union(*(edit.removed for edit in through)),
        moved.union(*(edit.moved for edit in through)),
    )


def _behind(star: exp.Expr, scope: Scope) -> Iterator[SqlEdit]:
    table = star.table if isinstance(star, exp.Column) else ""
    return (edit for alias, edit in scope.sources.items() if table in ("", alias))


def _moved(before: list[str], after: list[str]) -> frozenset[str]:
    """Name the smallest set of outputs whose move explains the new order."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    stayed = {
        name for block in matcher.get_matching_blocks() for name in before[block.a :][: block.size]
    }
    return frozenset(after) - stayed


def _changed(
    before: _Outputs, after: _Outputs, scope: Scope, others: tuple[frozenset[str], ...]
) -> frozenset[str]:
    """Find outputs with another expression, then those that use their values by alias.

    After an output was added, removed or moved, another one's bare name may resolve differently.
    """
    both = after.keys() & before.keys()
    changed = frozenset(name for name in both if text_of(before[name]) != text_of(after[name]))
    sources = frozenset(scope.sources)
    real = _named_like_sources(before, sources) | _named_like_sources(after, sources)
    added, removed, moved = others
    while True:
        outputs = SqlEdit(changed=(changed | removed | moved) - real, added=added - real)
        more = {
            n for n in both - changed if not is_star(after[n]) and scope.sees(after[n], outputs)
        }
        if not more:
            return changed
        changed |= more


def _named_like_sources(outputs: _Outputs, sources: frozenset[str]) -> frozenset[str]:
    """Outputs whose own expression names a column like them: a source's, for it can't be itself.

    A query inside the expression has sources of its own.
    """
    return frozenset(
        name
        for name, projection in outputs.items()
        if name in named_bare(here(projection), sources)
    )


def _row_reasons(
    new: exp.Select, before: _Outputs, after: _Outputs, edit: SqlEdit, scope: Scope
) -> Iterator[str]:
    """The ways in which projections decide about rows.

    A star through which an edit comes counts as a projection that differs.
    """
    concerned = [after[n] for n in edit.added | edit.changed if n in after]
    concerned += [before[n] for n in edit.touched if n in before]
    concerned += [
        projection
        for projection in after.values()
        if is_star(projection) and any(source.shows for source in _behind(projection, scope))
    ]
    if new.args.get("distinct"):
        yield " under DISTINCT, which compares whole rows"
    if any(map(makes_rows, concerned)):
        yield ", by a function that makes several rows of one"
    yield from _grouping_reasons(new, before, after, concerned)
    yield from _order_reasons(new, edit, concerned)
    if _clauses_name(new, before, edit, concerned):
        yield ", which another clause goes by"


def _grouping_reasons(
    new: exp.Select,
    before: _Outputs,
    after: _Outputs,
    concerned: list[exp.Expr],
) -> Iterator[str]:
    group = new.args.get("group")
    if group is None and _folds(before) != _folds(after):
        yield ", an aggregate without GROUP BY"
    if group is None and not _folds(before) and _may_fold(before, after):
        yield ", by a function that may aggregate"
    if group is not None and group.args.get("all") and not all(map(groups_by_nothing, concerned)):
        yield " under GROUP BY ALL, which may group by it"


def _order_reasons(new: exp.Select, edit: SqlEdit, concerned: list[exp.Expr]) -> Iterator[str]:
    shifts = edit.added or edit.removed or edit.moved or any(map(is_star, concerned))
    if shifts and ordinals(new):
        yield ", which moves what a number in another clause stands for"
    if is_cut(new) and _sorts_by_any(new):
        yield ", and LIMIT keeps rows by the order of columns that no name tells"
    if edit.shuffled and (clause := clause_that_goes_by_order(new)):
        yield f", and {clause} goes by the order of rows"


def _sorts_by_any(select: exp.Select) -> bool:
    """Whether rows are sorted by ALL columns, or CLUSTER BY has a number."""
    cluster: exp.Expr | None = select.args.get("cluster")
    orders = (select.args.get(key) for key in ("order", "sort"))
    keys = (key for order in orders if order for key in order.expressions)
    by_number = cluster is not None and cluster.find(exp.Literal) is not None
    return by_number or any(isinstance(key.this, exp.Var) for key in keys)


def _folds(outputs: _Outputs) -> bool:
    return any(map(aggregates, outputs.values()))


def _may_fold(before: _Outputs, after: _Outputs) -> bool:
    """Whether an unknown function that comes or goes may be an aggregate: a column that stays forbids that."""
    staying = {
        name
        for name in before.keys() & after.keys()
        if text_of(before[name]) == text_of(after[name])
    }
    bare = any(isinstance(node, exp.Column) for name in staying for node in here(after[name]))
    edited = (
        projection
        for outputs in (before, after)
        for name, projection in outputs.items()
        if name not in staying
    )
    return not bare and any(map(is_unknown_call, edited))


def _clauses_name(
    new: exp.Select, before: _Outputs, edit: SqlEdit, concerned: list[exp.Expr]
) -> bool:
    """Whether GROUP BY, HAVING or a cut-off ORDER BY name an output that is not as it was.

    All but GROUP BY may do so by the name that Spark gives an output without an alias.
    """
    names = edit.touched | edit.added
    may_be_any = any(is_unnamed(each) and not is_star(each) for each in concerned)
    own = _named_like_sources(before, frozenset())
    looked_at = {"group": names - own - edit.added, "having": names, "qualify": names}
    if is_cut(new):
        looked_at |= dict.fromkeys(SORTS, names)
    return any(
        name in looked or (may_be_any and key != "group")
        for key, looked in looked_at.items()
        if (clause := new.args.get(key)) is not None
        for name in named_bare(clause.walk(), frozenset())
    )
