"""The cells of one model while a plan is made: which are planned, why, and which must wait."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import CellWork, Why

if TYPE_CHECKING:
    from backfill_assets.snapshots.cutoff import Cutoff


@dataclass(slots=True)
class ModelCells:
    """The cells of one model.

    Attributes:
        required: in the requested range.
        life: required, whatever the range.
        ready: the ready cells in the workspace before any batch.
        work: cells by reason; a cell occurs once.
        cells: every planned cell.
        waiting: cells left out, since something that they read can't become ready.
        stale_later: cells that read planned ones and are left out, since they reach past the end
            that the request is bounded by.
        missed: whether the requested range lies wholly outside of the model's life.
        before_data: cells left out of the requested range, since the source data begins later.
        cutoff: in force for the model once the plan is promoted.
        notes: what a reader should know.
    """

    required: IntervalSet
    life: IntervalSet
    ready: IntervalSet
    work: list[CellWork] = field(default_factory=list[CellWork])
    cells: IntervalSet = field(default_factory=IntervalSet.empty)
    waiting: IntervalSet = field(default_factory=IntervalSet.empty)
    stale_later: IntervalSet = field(default_factory=IntervalSet.empty)
    missed: bool = False
    before_data: IntervalSet = field(default_factory=IntervalSet.empty)
    cutoff: Cutoff | None = None
    notes: list[str] = field(default_factory=list[str])

    @property
    def certain(self) -> IntervalSet:
        """Planned cells that are built even if their input does not change."""
        return IntervalSet.union_all(part.cells for part in self.work if part.certain)

    @property
    def leaves_out(self) -> bool:
        """Whether cells that were asked for, or follow from it, are no part of the plan."""
        return bool(self.waiting or self.stale_later or self.before_data or self.missed)

    def add(self, why: Why, cells: IntervalSet, because: str = "", *, certain: bool = True) -> None:
        """Plan the cells that no earlier reason has planned."""
        new = cells - self.cells
        if new:
            self.work.append(CellWork(why, new, certain, because))
            self.cells |= new

    def leave_out(self, cells: IntervalSet) -> None:
        """Take cells out of the work again; those that are ready stay as they are."""
        kept = (replace(part, cells=part.cells - cells) for part in self.work)
        self.work = [part for part in kept if part.cells]
        self.cells -= cells
        self.waiting |= cells - self.ready
