"""Find the last failure of a model whose cells still need work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.failure import FailedBatch, FailedStart, FailureKind
    from backfill_assets.snapshots.state_view import ReadyRun


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A failure after which cells still need work.

    Attributes:
        model: whose.
        cells: of those that failed, the ones that still need work.
        kind: what kind of failure it was; None where that was not recorded.
        at: when.
        batch_id: the batch that failed; None where none had begun.
        error: why, where no batch had begun; a batch's error is kept with the batch.
    """

    model: str
    cells: IntervalSet
    kind: FailureKind | None
    at: datetime
    batch_id: str | None
    error: str | None


def last_unresolved(
    todo: IntervalSet,
    runs: Sequence[ReadyRun],
    batches: Iterable[FailedBatch],
    starts: Iterable[FailedStart],
) -> Unresolved | None:
    """Find the latest failure of a model whose cells still need work, and were not built since.

    Args:
        todo: the cells of the model that are missing or stale.
        runs: what is ready of it.
        batches: its failed batches.
        starts: its failures before a batch began.
    """
    failures = [
        *((failed, failed.ended, failed.batch_id, None) for failed in batches),
        *((failed, failed.at, None, failed.error) for failed in starts),
    ]
    latest_first = sorted(failures, key=lambda each: each[1], reverse=True)
    remaining = (
        Unresolved(failed.model, cells, failed.kind, at, batch_id, error)
        for failed, at, batch_id, error in latest_first
        if (cells := failed.unbuilt(runs) & todo)
    )
    return next(remaining, None)
