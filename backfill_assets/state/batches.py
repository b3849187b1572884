"""Batches, from claim to record; each step is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.batch import FAILED
from backfill_assets.snapshots.failure import FailedBatch, FailureKind
from backfill_assets.state import (
    adopting,
    batch_rows,
    claims,
    heartbeats,
    locks,
    opening,
    overtaking,
    promotions,
    recording,
)
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.audits import Audited, audit_of, save_audits
from backfill_assets.state.batch_rows import BatchRow, Ending
from backfill_assets.state.cells import bounds, stretches_of
from backfill_assets.state.claims import Claimant
from backfill_assets.state.rows import read_as
from backfill_assets.state.tables import AUDIT_RESULTS, BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.snapshots.batch import BatchCommit, BatchRequest, OpenBatch
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.audits import AuditRow
    from backfill_assets.state.database import Database
    from backfill_assets.state.locks import CommitLock

_READ = (
    "batch_id", "model", "version", "fingerprint", "run_id", "starts", "ends", "failure", "built_at",
    "finished_at", "stretches",
)  # fmt: skip


class Batches(Aggregate[D]):
    """Batches from claim to record, and what is known of them afterwards.

    Each method is one transaction.
    """

    def get(self, batch_id: str) -> BatchRow:
        """Read one batch; `UnknownBatchError` when it was never opened."""
        return self._database.read(batch_rows.batch, batch_id)

    def find(self, batch_id: str) -> BatchRow | None:
        """Read one batch; None when it was never opened."""
        return self._database.read(batch_rows.find_batch, batch_id)

    def inputs_of(self, batch_ids: Iterable[str]) -> dict[str, tuple[InputPin, ...]]:
        """Read what batches have read, by their ids; one that was never opened is not among them."""
        ids = {*batch_ids}  # a read that is tried again asks again
        return self._database.read(batch_rows.inputs_of, ids)

    def latest(self, *, model: str | None = None, limit: int | None = None) -> list[BatchRow]:
        """Read batches, the latest first."""
        return self._database.read(batch_rows.batches, model, limit)

    def of_plan(self, plan_id: str) -> list[BatchRow]:
        """Read the batches that served a plan, the earliest first."""
        query = sa.select(BATCHES).where(BATCHES.c.plan_id == plan_id)
        rows = self._rows(query.order_by(BATCHES.c.built_at, BATCHES.c.batch_id))
        return [batch_rows.batch_of(row) for row in rows]

    def audits_of_plan(self, plan_id: str) -> list[AuditRow]:
        """Read what the audits of a plan's batches found, attempt by attempt, the earliest first."""
        at = AUDIT_RESULTS.c
        own = sa.select(BATCHES.c.batch_id).where(BATCHES.c.plan_id == plan_id)
        query = sa.select(AUDIT_RESULTS).where(at.batch_id.in_(own))
        rows = self._rows(query.order_by(at.audited_at, at.batch_id, at.attempt, at.audit))
        return [audit_of(row) for row in rows]

    def failed_batches(self, versions: Iterable[str]) -> list[FailedBatch]:
        """Read the failed batches of these tables, the earliest first."""
        at = BATCHES.c
        # Written into the statement: SQLite uses the index of failed batches for no bound value.
        is_failed = at.status == sa.literal(FAILED, literal_execute=True)
        failed = sa.and_(is_failed, at.version.in_([*versions]), at.finished_at.is_not(None))
        query = sa.select(*(at[name] for name in _READ)).where(failed)
        read = sa.select(at.batch_id, at.inputs).where(failed, at.failure == FailureKind.INPUT)

        def work(connection: sa.Connection) -> list[FailedBatch]:
            sources = {
                row.batch_id: {
                    pin.upstream: pin.delta_version for pin in row.inputs if not pin.version
                }
                for row in connection.execute(read)
            }
            rows = connection.execute(query.order_by(at.built_at, at.batch_id))
            return [_failed(row, sources.get(row.batch_id, {})) for row in rows]

        return self._database.read(work)

    def attempts(self, version: str, stretches: IntervalSet) -> int:
        """Count how often a batch from the first to the last of these cells was tried."""
        cells, at = bounds(stretches.span()), BATCHES.c
        tried = sa.select(sa.func.coalesce(sa.func.max(at.attempt), 0)).where(
            at.version == version, at.starts == cells["starts"], at.ends == cells["ends"]
        )
        ((attempts,),) = self._rows(tried)
        return attempts

    def audit_results(
        self, *, model: str | None = None, batch_id: str | None = None
    ) -> list[AuditRow]:
        """Read audit results, the latest first."""
        at = AUDIT_RESULTS.c
        query = sa.select(AUDIT_RESULTS).order_by(
            at.audited_at.desc(), at.batch_id, at.attempt.desc(), at.audit
        )
        if model is not None:
            query = query.where(at.model == model)
        if batch_id is not None:
            query = query.where(at.batch_id == batch_id)
        return [audit_of(row) for row in self._rows(query)]

    def check_claims(self, batch_id: str) -> None:
        """Make sure, with the commit lock in hand, that a batch still holds its cells.

        Raises:
            LostClaimError: it was silent for longer than the lease and another took them.
        """
        self._database.read(claims.check_claims, batch_id)

    def check_inputs(self, opened: OpenBatch) -> None:
        """Make sure, before a batch commits, that no publication has overtaken what it read.

        Raises:
            InputsMovedError: its model or an upstream points elsewhere by now, or cells that it
                read or rewrites were published anew since it pinned its inputs.
            CellsReadyError: another run has done some of its work by now.
        """
        self._database.read(overtaking.check_inputs, opened)

    def open_batch(self: Batches[Database], request: BatchRequest) -> OpenBatch:
        """Verify and pin what a batch reads, and claim its cells.

        Raises:
            VersionMovedError: its environment points at another version.
            UpstreamNotReadyError: it reads cells that are not ready at the pin.
            RequestError: another environment alone writes the version.
            CellsClaimedError: a live batch holds some of its cells.
            CellsReadyError: another run has done some of its work by now.
            PlanPausedOrStoppedError: its plan is paused or stopped.
            NoSlotError: all slots of a limit are taken.
        """
        # The clock is read inside of the transaction: the wait for the database ages no claim.
        opened = self._database.write(
            lambda connection: opening.open_in_turn(connection, request, self._clock(), self._lease)
        )
        if isinstance(opened, BackfillAssetsError):
            raise opened
        return opened

    def claim_more(self: Batches[Database], batch_id: str, cells: IntervalSet) -> None:
        """Claim cells of other batches too, where a merge moves rows.

        Raises:
            CellsClaimedError: a live batch holds some of them.
            LostClaimError: the batch does not hold its own cells any more.
        """

        def work(connection: sa.Connection) -> None:
            row, now = batch_rows.batch(connection, batch_id), self._clock()
            who = Claimant(batch_id, row.run_id, row.model, row.version, now, self._lease)
            claims.claim_more(connection, who, cells)

        self._database.write(work)

    def heartbeat(self: Batches[Database], run_id: str) -> None:
        """Tell that a run is alive: its batches' claims, its locks, and its intents to publish."""

        def work(connection: sa.Connection) -> None:
            now = self._clock()
            heartbeats.bring_back(connection, now, self._lease)
            claims.refresh_claims(connection, run_id, now)
            locks.refresh_locks(connection, run_id, now)
            promotions.refresh(connection, run_id, now)

        self._database.write(work)

    def record(
        self: Batches[Database],
        commit: BatchCommit,
        lock: CommitLock,
        delta_version: int,
        *,
        bytes_written: int | None,
        finished_at: datetime,
    ) -> None:
        """Make a commit's cells ready and visible; recording it again changes nothing.

        Raises:
            LostLeaseError: the lock was taken over.
            RequestError: a later commit of the table is recorded already.
        """
        ending = Ending(delta_version, bytes_written, finished_at)
        self._database.write(recording.record, commit, lock, ending)

    def adopt(
        self: Batches[Database],
        commit: BatchCommit,
        lock: CommitLock,
        delta_version: int,
        *,
        bytes_written: int | None,
        finished_at: datetime,
    ) -> bool:
        """Record a commit that was found in a table's log, if this state can vouch for it.

        Returns:
            Whether it counts; else the table is to be taken back to what is known.

        Raises:
            LostLeaseError: the lock was taken over.
            RequestError: a later commit of the table is recorded already.
        """
        ending = Ending(delta_version, bytes_written, finished_at)
        return self._database.write(adopting.adopt, commit, lock, ending)

    def fail_batch(
        self: Batches[Database],
        batch_id: str,
        *,
        error: str,
        audits: tuple[AuditResult, ...],
        finished_at: datetime,
        failure: FailureKind = FailureKind.CODE,
    ) -> None:
        """Keep why a batch failed and what its audits found; release its cells.

        One that is committed stays so, whatever came after.

        Raises:
            UnknownBatchError: it was never opened.
        """
        ended = {
            "status": FAILED, "error": error, "failure": failure, "finished_at": finished_at,
        }  # fmt: skip

        def work(connection: sa.Connection) -> None:
            row = batch_rows.batch(connection, batch_id)
            if not row.is_committed:
                of = Audited(batch_id, row.attempt, row.model, row.stretches.span(), finished_at)
                save_audits(connection, of, audits)
                own = sa.update(BATCHES).where(BATCHES.c.batch_id == batch_id)
                connection.execute(own.values(ended))
            claims.drop_claims(connection, batch_id)

        self._database.write(work)


def _failed(row: sa.Row[Any], sources: Mapping[str, int]) -> FailedBatch:
    kind, ended = row.failure, row.finished_at
    return read_as(
        FailedBatch, row, cells=stretches_of(row), kind=kind, ended=ended, sources=sources
    )
