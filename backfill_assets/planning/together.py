"""Group the cells that one change of an upstream has overtaken: they are built again at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NOTHING = IntervalSet.empty()


def together(
    changes: Iterable[Mapping[str, IntervalSet]], cells: Mapping[str, IntervalSet]
) -> dict[str, IntervalSet]:
    """Give some cells, and every cell that a change connects with one of them.

    Args:
        changes: per change, the cells that it has overtaken, by model. A cell may belong to several
            changes, which are then connected.
        cells: by model.
    """
    found = dict(cells)
    left = list(changes)
    while True:
        apart: list[Mapping[str, IntervalSet]] = []
        for change in left:
            if not any(part & found.get(name, _NOTHING) for name, part in change.items()):
                apart.append(change)
                continue
            for name, part in change.items():
                found[name] = found.get(name, _NOTHING) | part
        if len(apart) == len(left):
            return found
        left = apart[::-1]  # a chain of changes is followed one way, then the other
