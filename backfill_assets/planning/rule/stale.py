"""The cells of one model that a change of an upstream has made stale."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval_set import IntervalSet


@dataclass(frozen=True, slots=True)
class Stale:
    """Ready cells that were built before an upstream of theirs changed.

    Attributes:
        cells: which.
        upstream: what changed: a model, or a source that got late data.
        upstream_cells: which cells of it.
        late: whether it is a source.
        changes: the same cells by the number of the upstream's change; a cell that several changes
            have overtaken stands under each.
    """

    cells: IntervalSet
    upstream: str
    upstream_cells: IntervalSet
    late: bool = False
    changes: Mapping[int, IntervalSet] = field(default_factory=dict[int, "IntervalSet"])

    @property
    def words(self) -> str:
        """Describe the upstream's change in words."""
        return f"{self.upstream} {'got, lost or changed rows' if self.late else 'changed'}"
