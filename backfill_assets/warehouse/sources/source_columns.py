"""Find the columns of a source's cells that changed, where the other columns hold the same rows.

Columns that each hold the same values may still be paired differently, so they count as kept only if
they are shown to hold the same rows together. Without that proof, a change counts for every column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from backfill_assets.models.source import Source

Columns: TypeAlias = frozenset[str]

Same: TypeAlias = Callable[[IntervalSet, Sequence[Columns]], Mapping[Interval, Sequence[bool]]]
"""Decides, by cell, for each group of columns whether they together hold the same rows as before."""

_MOST_GROUPS = 16  # compared in one pass over the rows


def changed_columns(source: Source, cells: IntervalSet, same: Same) -> dict[Interval, Columns]:
    """Name the columns that changed in cells that differ and hold as many rows as before.

    A model that reads none of them reads the same rows as before. A cell is left out where that can't be
    shown, or where its event times changed. Where two columns are only paired differently, the change
    counts for the one that is declared later, because keys are declared first.

    Args:
        source: whose declared columns are compared.
        cells: which.
        same: compares their rows.
    """
    names = [column.name for column in source.schema]
    alone = same(cells, [frozenset({name}) for name in names])
    alike = {
        cell: frozenset(name for name, answer in zip(names, answers, strict=True) if answer)
        for cell, answers in alone.items()
    }
    kept = _kept(source, {cell: [columns] for cell, columns in alike.items()}, same)
    fewer = {
        cell: [columns - {name} for name in reversed(names) if name in columns]
        for cell, columns in alike.items()
        if cell not in kept
    }
    kept |= _kept(source, fewer, same)
    return {cell: frozenset(names) - columns for cell, columns in kept.items()}


def _kept(
    source: Source, tried: Mapping[Interval, Sequence[Columns]], same: Same
) -> dict[Interval, Columns]:
    """Give the first group of columns of each cell that is shown to hold the same rows."""
    every = frozenset(column.name for column in source.schema)
    fixed = every & {source.time_column}
    usable = {
        cell: [group for group in groups if group and fixed <= group < every]
        for cell, groups in tried.items()
    }
    frequent = Counter(chain.from_iterable(usable.values())).most_common(_MOST_GROUPS)
    if not frequent:
        return {}
    groups = [group for group, _ in frequent]
    answers = same(IntervalSet.of(cell for cell, some in usable.items() if some), groups)
    shown = {
        cell: [group for group, answer in zip(groups, flags, strict=True) if answer]
        for cell, flags in answers.items()
    }
    return {
        cell: group
        for cell, some in usable.items()
        for group in [candidate for candidate in some if candidate in shown.get(cell, ())][:1]
    }
