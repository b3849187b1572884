"""Cutoffs: the day before which a model's cells keep the definition that they were built with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The day before which a model's cells keep the old definition, until it is lifted.

    Attributes:
        since: the first local date of the new definition, as written.
        reason: why older cells keep the old one.
        plan_id: the plan that brought it; empty in that plan itself.
    """

    since: str
    reason: str
    plan_id: str = ""

    def kept(self, cadence: Cadence, cells: IntervalSet) -> IntervalSet:
        """Give those of the cells that keep the old definition; of a model that is one cell, none."""
        if cadence.unit is Unit.WHOLE or not cells:
            return IntervalSet.empty()
        first = epoch_of(cadence.ceil(start_at(self.since, cadence.tz)))
        return cells.within(cells.boundaries[0], first) if cells.boundaries[0] < first else _NONE

    def words(self, model: str) -> str:
        """Describe its effect, and how it ends."""
        by = f"; set by plan {self.plan_id}" if self.plan_id else ""
        end = f"; `backfill plan --lift-cutoff {model}` ends that" if self.plan_id else ""
        return f"before {self.since} its cells keep the old definition ({self.reason}{by}){end}"


_NONE = IntervalSet.empty()
