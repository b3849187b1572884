"""The cells of several models as one value with the operators of sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NONE = IntervalSet.empty()


@dataclass(frozen=True, slots=True, eq=False)
class CellsByModel(Mapping[str, IntervalSet]):
    """The cells of several models (or sources), by name.

    A model without cells is left out, so equal cells are equal values, and no cells are false. A model
    that is not named has the empty set, also by `get`. Models keep the order in which they were first
    named. Where it matters that a model is named although it has no cells, a plain mapping says so.

    Attributes:
        cells: by model, none of them empty.
    """

    cells: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])

    def __post_init__(self) -> None:
        non_empty = {name: cells for name, cells in self.cells.items() if cells}
        object.__setattr__(self, "cells", non_empty)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, IntervalSet]]) -> CellsByModel:
        """Unite the cells that are given for the same model."""
        by_name: dict[str, list[IntervalSet]] = {}
        for name, cells in pairs:
            by_name.setdefault(name, []).append(cells)
        return cls({name: IntervalSet.union_all(each) for name, each in by_name.items()})

    def __getitem__(self, name: str) -> IntervalSet:
        return self.cells.get(name, _NONE)

    def __contains__(self, name: object) -> bool:
        return name in self.cells

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __or__(self, other: Mapping[str, IntervalSet]) -> CellsByModel:
        more = {name: self[name] | cells for name, cells in other.items() if cells}
        return _canonical({**self.cells, **more})

    def __and__(self, other: Mapping[str, IntervalSet]) -> CellsByModel:
        return CellsByModel({name: cells & other.get(name, _NONE) for name, cells in self.items()})

    def __sub__(self, other: Mapping[str, IntervalSet]) -> CellsByModel:
        return CellsByModel({name: cells - other.get(name, _NONE) for name, cells in self.items()})


def _canonical(cells: Mapping[str, IntervalSet]) -> CellsByModel:
    """Give cells of which none are empty, without looking: many are united one model at a time."""
    made = object.__new__(CellsByModel)
    object.__setattr__(made, "cells", cells)
    return made
