"""Group the cells that one change of an upstream has overtaken: they are built again at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.cells_by_model import CellsByModel


def together(changes: Iterable[CellsByModel], cells: CellsByModel) -> CellsByModel:
    """Give some cells, and every cell that a change connects with one of them.

    Args:
        changes: per change, the cells that it has overtaken, by model. A cell may belong to several
            changes, which are then connected.
        cells: by model.
    """
    found, left = cells, list(changes)
    while True:
        apart: list[CellsByModel] = []
        for change in left:
            if change & found:
                found |= change
            else:
                apart.append(change)
        if len(apart) == len(left):
            return found
        left = apart[::-1]  # a chain of changes is followed one way, then the other
