"""Which kind of failure an error is: the one place that decides what is tried again by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.batch.audited import AuditsFailedError
from backfill_assets.engine.batch.sources import EmptySourceError
from backfill_assets.engine.batch.table_turn import ForeignTableError, OvertakenError
from backfill_assets.engine.project.cancelling import (
    BatchTimeoutError,
    BatchTooOldError,
    PlanCancelledError,
    RunCancelledError,
)
from backfill_assets.errors import BackfillAssetsError, PassingError, one_line
from backfill_assets.intervals.text import ranges_text
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state.claims import CellsClaimedError, LostClaimError
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.limits import NoSlotError
from backfill_assets.state.locks import LostLeaseError, PlanLeasedError, TableLockedError
from backfill_assets.state.opening import (
    CellsReadyError,
    UpstreamNotReadyError,
    VersionMovedError,
)
from backfill_assets.state.overtaking import InputsMovedError
from backfill_assets.state.promotions import PromotionPendingError, PromotionTakenOverError
from backfill_assets.state.publications import PinMovedError
from backfill_assets.state.queue import PlanPausedOrStoppedError
from backfill_assets.state.versions import VersionCollectingError
from backfill_assets.warehouse.files.cell_files import UnseenFilesError
from backfill_assets.warehouse.files.log_entry import FilesGoneError
from backfill_assets.warehouse.files.tables import MissingTableError
from backfill_assets.warehouse.log.delta_log import CorruptTableError
from backfill_assets.warehouse.log.object_store import CarelessStoreError
from backfill_assets.warehouse.log.ticket import CommitLostError
from backfill_assets.warehouse.rows.computed import MovedMeanwhileError
from backfill_assets.warehouse.rows.doubles import DoubleMeanwhileError
from backfill_assets.warehouse.rows.inputs import SchemaDriftError
from backfill_assets.warehouse.spark.connect import (
    SparkUnreachableError,
    SparkVersionError,
    SparkWithoutDeltaError,
)
from backfill_assets.warehouse.spark.session import (
    MissingJarsError,
    MissingS3JarsError,
    UnsafeLogStoreError,
)
from backfill_assets.warehouse.spark.spark_errors import (
    CommitConflictError,
    DamagedFileError,
    JobsCancelledError,
    PinGoneError,
    SparkLostError,
    StoreFailedError,
    WarehouseUnwritableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model

_KINDS: Mapping[FailureKind, tuple[type[Exception], ...]] = {
    FailureKind.TRANSIENT: (
        # Spark, the network, a disk, the database
        SparkLostError, SparkUnreachableError, WarehouseUnwritableError, StoreFailedError,
        CarelessStoreError,
        StateBusyError, StateUnavailableError,
        # other writers
        CommitConflictError, CommitLostError, FilesGoneError, UnseenFilesError, OvertakenError, MovedMeanwhileError,
        DoubleMeanwhileError,
        PassingError, PlanLeasedError, PromotionPendingError, PromotionTakenOverError, PinMovedError,
        VersionCollectingError, TableLockedError, LostLeaseError, LostClaimError, CellsClaimedError, NoSlotError,
        InputsMovedError, VersionMovedError, CellsReadyError,
    ),
    FailureKind.AUDIT: (AuditsFailedError,),
    FailureKind.INPUT: (
        UpstreamNotReadyError, MissingTableError, EmptySourceError, SchemaDriftError,
        CorruptTableError, DamagedFileError, PinGoneError, ForeignTableError,
    ),
    FailureKind.TIMEOUT: (BatchTimeoutError, BatchTooOldError),
    FailureKind.CANCELLED: (
        RunCancelledError, PlanCancelledError, PlanPausedOrStoppedError, JobsCancelledError,
    ),
    FailureKind.SETUP: (
        MissingJarsError, MissingS3JarsError, UnsafeLogStoreError, SparkVersionError, SparkWithoutDeltaError,
    ),
}  # fmt: skip


def sentence_of_batch(model: Model, stretches: IntervalSet, error: Exception) -> str:
    """Say why a batch failed; of an error that is not ours, whose batch it was."""
    if isinstance(error, BackfillAssetsError):
        return str(error)
    cells = ranges_text(model.cadence, stretches)
    return (
        f"the batch of '{model.name}' over {cells} failed: {one_line(error)}. Published data is "
        "unchanged"
    )


def kind_of(error: BaseException) -> FailureKind:
    """Tell which kind of failure an error of ours is; one that is not classified is the code's."""
    for kind, causes in _KINDS.items():
        if isinstance(error, causes):
            return kind
    return FailureKind.CODE if isinstance(error, Exception) else FailureKind.CANCELLED
