"""Decide whether a new table takes over kept rows: published rows that their source no longer has.

A model that keeps such rows (`deletes="none"`, soft deletes, tombstones) would lose them with an empty
new table. A table that is only wider takes them over. After a breaking change their values can't be
known, so a person decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.request import Category, KeptRows

if TYPE_CHECKING:
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.model_change import ModelChange


def kept_rows(
    asked: KeptRows | None,
    change: ModelChange,
    models: tuple[Model | None, Model],
    published: IntervalSet,
) -> KeptRows | None:
    """Decide what becomes of kept rows in a model's new table; None where there can't be any.

    Args:
        asked: the person's choice; None for none.
        change: the change of the model.
        models: the declaration that the environment runs (None for none), and the new one.
        published: the cells that the environment publishes.

    Raises:
        RequestError: the change is breaking, and the request has no choice.
        RequestError: they are to be carried, and the new table identifies rows differently.
    """
    old, new = models
    if not change.new_version or old is None or not new.keeps_rows or not published:
        return None
    mismatch = unfit(old, new)
    if change.category is Category.NON_BREAKING and mismatch is None:
        return KeptRows.CARRY
    if asked is None:
        raise RequestError(
            found=f"'{new.name}' keeps rows whose source is gone, and its "
            f"{new.cadence.count(published):,} published cells may hold some; what the new "
            "logic would have made of them can't be known",
            do="Say what becomes of them: --kept-rows carry (as they are published, NULL in new "
            "columns) or --kept-rows drop",
        )
    if asked is KeptRows.CARRY and mismatch is not None:
        raise RequestError(
            found=f"rows that '{new.name}' keeps can't be carried over: {mismatch}",
            do="Use --kept-rows drop, or keep the old definition of older cells with --cutoff DATE "
            "--reason TEXT",
        )
    return asked


def lacking_values(old: Model, new: Model) -> str | None:
    """Say which new columns must have a value that carried rows can't have; None for none."""
    known = {column.name for column in old.schema}
    lacking = [
        column.name for column in new.schema if column.name not in known and not column.nullable
    ]
    if not lacking:
        return None
    return (
        f"carried rows have no {', '.join(lacking)}, which must not be NULL: cells that hold such rows "
        "will fail that audit; let the column be nullable"
    )


def unfit(old: Model, new: Model) -> str | None:
    """Say why published rows don't fit the new table; None where they do."""
    if set(old.key) != set(new.key):
        return f"the unique key becomes {', '.join(new.key)}"
    if old.time_column != new.time_column:
        return f"the time column becomes {new.time_column}"
    if (old.cadence.grid, old.cadence.tz) != (new.cadence.grid, new.cadence.tz):
        return "its cells are cut otherwise"
    return None
