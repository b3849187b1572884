"""Failures of batches: their kinds, and the facts that decide whether cells are built again."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.snapshots.state_view import ReadyRun


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

    def unbuilt(self, runs: Iterable[ReadyRun]) -> IntervalSet:
        """Give those of its cells that were not built since, of what is ready in its model."""
        return self.cells - IntervalSet.of(
            run.interval for run in runs if run.built_at > self.built_at
        )


@dataclass(frozen=True, slots=True)
class FailedStart:
    """Cells for which no batch could begin: a source has no table, or the table is not as it must be.

    Attributes:
        model: whose.
        cells: which.
        error: why, in one sentence.
        kind: what kind of failure it was.
        run_id: the run.
        who: the person or the automation whose run it was.
        at: when.
    """

    model: str
    cells: IntervalSet
    error: str
    kind: FailureKind
    run_id: str
    who: str
    at: datetime

    def unbuilt(self, runs: Iterable[ReadyRun]) -> IntervalSet:
        """Give those of its cells that were not built since, of what is ready in its model."""
        since = (run for run in runs if run.began_at is not None and run.began_at > self.at)
        return self.cells - IntervalSet.of(run.interval for run in since)


class FailureKind(StrEnum):
    """Why a batch committed nothing.

    Attributes:
        TRANSIENT: neither the code nor the rows are at fault: Spark, the network, a disk, the
            database or another writer was. The same batch may succeed later, so it is tried again.
        AUDIT: a blocking audit failed.
        CODE: the query or the declaration is wrong; every unclassified error counts as this.
        INPUT: what the batch reads, or the table that it writes, is not as it must be.
        TIMEOUT: it took longer than its model allows.
        CANCELLED: a person stopped its run or its plan.
        SETUP: Spark can't be used as it is set up here, such as without Delta's jars. It is asked for
            again later, as a person may have mended it; trying at once would meet the same.
    """

    TRANSIENT = "transient"
    AUDIT = "audit"
    CODE = "code"
    INPUT = "input"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SETUP = "setup"

    @property
    def may_pass(self) -> bool:
        """Whether it may pass by itself; what else fails does so until other rows or other code come."""
        return self in _MAY_PASS


_MAY_PASS = {
    FailureKind.TRANSIENT,
    FailureKind.TIMEOUT,
    FailureKind.CANCELLED,
    FailureKind.SETUP,
}

ONE_S_OWN = {FailureKind.AUDIT, FailureKind.CODE, FailureKind.INPUT, FailureKind.TIMEOUT}
"""Failures of a batch that may be those of one of its stretches; any other would meet all of them."""
