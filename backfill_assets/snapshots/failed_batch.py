"""A failed batch: the facts that decide whether its cells are asked for again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.failure import FailureKind


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """Cells whose batch committed nothing.

    Attributes:
        batch_id: its id.
        model: whose.
        version: the table that it would have written.
        fingerprint: the snapshot that it ran.
        run_id: the run that carried it.
        cells: which.
        kind: what kind of failure ended it; None where it was not recorded.
        built_at: the counter when it pinned its inputs.
        ended: when it failed.
        sources: where it read each source, if an input failed it.
    """

    batch_id: str
    model: str
    version: str
    fingerprint: str
    run_id: str
    cells: IntervalSet
    kind: FailureKind | None
    built_at: int
    ended: datetime
    sources: Mapping[str, int] = field(default_factory=dict[str, int])
