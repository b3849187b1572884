"""Derive the difference that a model's own readers see when an upstream of it has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.errors import SqlglotError

from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.change.categorize import Difference
from backfill_assets.planning.change.declared_change import identifying
from backfill_assets.planning.change.sql_change import sql_effect
from backfill_assets.planning.change.sql_edit import SqlEdit
from backfill_assets.planning.plan.request import Category

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.model import Model


def derived(model: Model, changed: Mapping[str, Difference]) -> Difference:
    """Carry the difference of upstreams through a model; where it is unknown, every column may differ.

    Args:
        model: the one that reads them, as it is.
        changed: per upstream of which it reads changed columns, the difference.
    """
    why = f"reads what changed of {', '.join(sorted(changed))}"
    everything = Difference(Category.BREAKING, why, rows=True, columns=None)
    query = model.logic
    opaque = any(one.rows or one.columns is None for one in changed.values())
    if opaque or not isinstance(query, SqlQuery):
        return everything
    edits = {name: SqlEdit(changed=one.columns or frozenset()) for name, one in changed.items()}
    try:
        effect = sql_effect(query, edits)
    except SqlglotError:
        return everything
    if effect.rows or effect.added or effect.removed or effect.moved:
        return everything
    declared = {column.name.lower(): column.name for column in model.schema}
    columns = frozenset(declared.get(name, name) for name in effect.changed)
    if columns & identifying(model):
        return everything
    return Difference(Category.BREAKING, why, rows=False, columns=columns)
