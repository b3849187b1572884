"""Derive how an edit may change the content of a model, and of the models that read it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.change.categorize import (
    DeclarationDifference,
    affected,
    both,
    difference,
)
from backfill_assets.planning.change.declared_change import identifying
from backfill_assets.planning.change.sql_change import sql_effect
from backfill_assets.planning.change.sql_edit import SqlEdit
from backfill_assets.planning.plan.plan import Change
from backfill_assets.planning.plan.request import Category

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan


def derived(model: Model, changed: Mapping[str, DeclarationDifference]) -> DeclarationDifference:
    """Carry the difference of upstreams through a model; where it is unknown, every column may differ.

    Args:
        model: the one that reads them, as it is.
        changed: per upstream of which it reads changed columns, the difference.
    """
    why = f"reads what changed of {', '.join(sorted(changed))}"
    everything = DeclarationDifference(Category.BREAKING, why, rows=True, columns=None)
    query = model.logic
    opaque = any(difference.rows or difference.columns is None for difference in changed.values())
    if opaque or not isinstance(query, SqlQuery):
        return everything
    edits = {
        name: SqlEdit(changed=difference.columns or frozenset())
        for name, difference in changed.items()
    }
    effect = sql_effect(query, edits)
    if effect.rows or effect.spread:
        return everything
    declared = {column.name.lower(): column.name for column in model.schema}
    columns = frozenset(declared.get(name, name) for name in effect.changed)
    if columns & identifying(model):
        return everything
    return DeclarationDifference(Category.BREAKING, why, rows=False, columns=columns)


def reads_of_both(
    before: Mapping[str, Model], after: Graph, model: Model, reads: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    """Give what a model reads by column over its upstreams as they were, and as they will be.

    A column that goes may have come in by a `*`, or been joined by its name: the query names it nowhere,
    and only what declared it tells.

    Args:
        before: the models that are run now.
        after: those that will be run.
        model: the reader, as it will be run.
        reads: what it reads of `after` by column; an upstream that is absent is read as a whole.
    """
    other = {
        up.name: before[up.name]
        for up in model.reads
        if up.name in before
        and up.name in after.models
        and before[up.name].schema != after.models[up.name].schema
    }
    if not other:
        return reads
    was = lineage_of(replace(after, models={**after.models, **other}), model).reads
    return {name: columns | was[name] for name, columns in reads.items() if name in was}


def explained(
    plan: Plan, before: Graph, after: Graph, reads: Mapping[str, Mapping[str, frozenset[str]]]
) -> dict[str, DeclarationDifference]:
    """Follow the edits of a plan from model to model; a model that is absent may not differ for them.

    Args:
        plan: the plan.
        before: what its environment runs.
        after: what its workspace runs.
        reads: per model, what it reads by column (lineage); absent means all.
    """
    differences: dict[str, DeclarationDifference] = {}
    for name in after.order:
        planned = plan.model(name)
        if planned is None or name not in before.models:
            continue
        model = after.models[name]
        changed = {up.name: differences[up.name] for up in model.reads if up.name in differences}
        if changed:
            read = reads_of_both(before.models, after, model, reads.get(name, {}))
            changed = {up: edit for up, edit in changed.items() if affected(edit, read.get(up))}
        if planned.change is Change.MODIFIED:
            differences[name] = difference(before.models[name], model)
        if changed:
            follows = derived(model, changed)
            differences[name] = both(differences[name], follows) if name in differences else follows
    return differences
