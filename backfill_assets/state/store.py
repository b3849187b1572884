"""The store: a state database, open for writing.

Each method is one transaction over the modules beside this one, which hold one aggregate each.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state import (
    adopting,
    batches,
    claims,
    clock_back,
    counter,
    locks,
    observing,
    pointers,
    promotions,
    rebuild,
    recording,
    snapshots,
    turns,
)
from backfill_assets.state.batches import Ending
from backfill_assets.state.claims import Claimant
from backfill_assets.state.database import Database
from backfill_assets.state.locks import LockRequest
from backfill_assets.state.migrate import migrate
from backfill_assets.state.queue_store import QueueStore
from backfill_assets.state.snapshots import StoredSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.snapshots.batch import BatchCommit, BatchRequest, OpenBatch
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.observation import Observation
    from backfill_assets.state.locks import CommitLock, Lease
    from backfill_assets.state.rebuild import LoggedCommit, TableHead


class Store(QueueStore):
    """One state database, open. Threads may share a store; processes open one each.

    Any method raises `StateBusyError` when others keep the database locked for too long, and
    `StateUnavailableError` when it can't be read or written.
    """

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], datetime],
        lease_seconds: float = 60,
        busy_seconds: float = 30,
        data_root: str | None = None,
    ) -> Self:
        """Open a state database, creating or upgrading its tables.

        Args:
            url: ``sqlite:////absolute/path/state.db`` or ``postgresql://user@host/name``.
            clock: tells the time, aware.
            lease_seconds: how long a claim or lock outlives its last heartbeat.
            busy_seconds: how long to wait for others that have the database locked.
            data_root: folder or URI under which tables lie: where they lie beneath it is kept relative
                to it. None: every path is kept as it is given.

        Raises:
            DeclarationError: the URL names neither.
            RequestError: a newer release has opened it.
            StateUnavailableError: it can't be opened.
            StateBusyError: others kept it locked.
            RequestError: it names tables by absolute URIs that may be those of a copy.
        """
        database = Database.open(url, busy_seconds=busy_seconds)
        try:
            migrate(database, data_root)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, timedelta(seconds=lease_seconds), data_root)

    @property
    def lease_seconds(self) -> float:
        """How long a claim or lock outlives its last heartbeat, in seconds."""
        return self._lease.total_seconds()

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Snapshots, pointers

    def save_snapshot(  # noqa: PLR0913 - the columns of one row
        self,
        *,
        fingerprint_id: str,
        model: str,
        version: str,
        definition: str,
        logic: str,
        upstream: str,
        metadata: str,
        sources: str | None = None,
    ) -> None:
        """Keep what running a snapshot later needs; one that is there already stays."""
        saved = StoredSnapshot(
            fingerprint_id, model, version, definition, logic, upstream, metadata, sources
        )
        now = self._clock()
        self._database.write(lambda found: snapshots.save_snapshot(found, saved, now))

    def ensure_pointer(self, pointer: Pointer, path: str) -> Pointer:
        """Create a model's first pointer, and its version at `path`; never move one.

        Returns:
            The pointer as it is now.
        """
        now, place = self._clock(), self.place(path)
        return self._database.write(
            lambda found: pointers.ensure_pointer(found, pointer, place, now)
        )

    def repoint_metadata(self, environment: str, model: str, fingerprint_id: str) -> None:
        """Run another snapshot of the same version from now on: only its metadata differs."""
        now = self._clock()
        self._database.write(
            lambda found: pointers.repoint_metadata(found, environment, model, fingerprint_id, now)
        )

    # Sources

    def observe(self, observation: Observation) -> bool:
        """Write what a look at a source has found, unless somebody else has looked meanwhile.

        Returns:
            Whether it was written; else what the other one found counts.
        """
        now = self._clock()
        return self._database.write(lambda found: observing.observe(found, observation, now))

    # One batch, from claim to record

    def open_batch(self, request: BatchRequest) -> OpenBatch:
        """Verify and pin what a batch reads, and claim its cells.

        Raises:
            VersionMovedError: its environment points at another version.
            UpstreamNotReadyError: it reads cells that are not ready at the pin.
            RequestError: another environment alone writes the version.
            CellsClaimedError: a live batch holds some of its cells.
            CellsReadyError: it fills a gap, and some of its cells are ready by now.
            PlanHeldError: its plan is paused or stopped.
            NoSlotError: as many batches are in flight as may be.
        """
        # The clock is read when its turn has come: a batch doesn't hold what it waits for.
        opened = self._database.write(
            lambda found: turns.open_in_turn(found, request, self._clock(), self._lease)
        )
        if isinstance(opened, BackfillAssetsError):
            raise opened
        return opened

    def claim_more(self, batch_id: str, cells: IntervalSet) -> None:
        """Claim cells of other batches too, where a merge moves rows.

        Raises:
            CellsClaimedError: a live batch holds some of them.
            LostClaimError: the batch does not hold its own cells any more.
        """
        now = self._clock()

        def work(found: Connection) -> None:
            row = batches.batch(found, batch_id)
            who = Claimant(batch_id, row.run_id, row.model, row.version, now, self._lease)
            claims.claim_more(found, who, cells)

        self._database.write(work)

    def heartbeat(self, run_id: str) -> None:
        """Tell that a run is alive: its batches' claims, its locks, and its intents to publish."""
        now = self._clock()

        def work(found: Connection) -> None:
            clock_back.bring_back(found, now, self._lease)
            claims.refresh_claims(found, run_id, now)
            locks.refresh_locks(found, run_id, now)
            promotions.refresh(found, run_id, now)

        self._database.write(work)

    def take_commit_lock(self, version: str, holder: str, *, above: int = 0) -> CommitLock:
        """Take a table's commit lock, or take it over from a holder that went silent.

        Args:
            version: whose table.
            holder: a batch id, or a run id when no two threads of the run take the same table's.
            above: the largest token in the table's own log.

        Raises:
            TableLockedError: another live holder has it, or a live promotion names the table.
            PromotionPendingError: a promotion that names it died half-way: finish that first.
        """
        now, request = self._clock(), LockRequest(version, holder, above)

        def work(found: Connection) -> CommitLock:
            promotions.check_closed(found, version, holder, now - self._lease)
            return locks.take_commit_lock(found, request, now, self._lease)

        return self._database.write(work)

    def take_lease(self, name: str, holder: str) -> None:
        """Take the right to work on a plan or a launch; a run's heartbeat keeps it.

        Raises:
            PlanLeasedError: another live run has it.
        """
        now = self._clock()
        # By itself: what is refused is undone.
        self._database.write(lambda found: clock_back.bring_back(found, now, self._lease))
        self._database.write(lambda found: locks.take_lease(found, name, holder, now, self._lease))

    def lease(self, name: str) -> Lease | None:
        """Read which run is at work on something, and until when that counts."""
        now = self._clock()
        return self._database.read(lambda found: locks.lease_of(found, name, now, self._lease))

    def release_lease(self, name: str, holder: str) -> None:
        """Let others work on a plan; does nothing when the lease was taken over."""
        self._database.write(lambda found: locks.release_all(found, (name,), holder))

    def release_commit_lock(self, lock: CommitLock) -> None:
        """Let others commit; does nothing when the lock was taken over."""
        self._database.write(lambda found: locks.release_commit_lock(found, lock))

    def advance_head(self, lock: CommitLock, delta_version: int) -> None:
        """Account for a fence or a restore; `LostLeaseError` when the lock was taken over."""
        self._database.write(lambda found: locks.advance_head(found, lock, delta_version))

    def compacted(self, lock: CommitLock, delta_version: int, now: datetime) -> None:
        """Account for a commit that changes no row; `LostLeaseError` when the lock was taken over."""
        self._database.write(lambda found: recording.compacted(found, lock, delta_version, now))

    def record(
        self,
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
        self._database.write(lambda found: recording.record(found, commit, lock, ending))

    def adopt(
        self,
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
        return self._database.write(lambda found: adopting.adopt(found, commit, lock, ending))

    def fail_batch(
        self,
        batch_id: str,
        *,
        error: str,
        audits: tuple[AuditResult, ...],
        finished_at: datetime,
        failure: FailureKind = FailureKind.CODE,
    ) -> None:
        """Keep why a batch failed and what its audits found; give its cells back."""
        self._database.write(
            lambda found: recording.fail_batch(found, batch_id, error, failure, audits, finished_at)
        )

    def rebuild(
        self,
        commits: Iterable[LoggedCommit],
        *,
        heads: Mapping[str, TableHead] | None = None,
        pointers: Iterable[Pointer] = (),
        seen: int = 0,
    ) -> None:
        """Replay the tables' own commits into this state, which must be empty.

        Args:
            commits: every batch that the tables' logs hold, in any order.
            heads: where each log ends, by version; its last batch when it is not named.
            pointers: where environments shall point; else at the version built last.
            seen: the largest number that any log names, also of commits that do not count.

        Raises:
            RequestError: the state holds something.
        """
        now, wanted = self._clock(), list(pointers)
        listed = [replace(one, path=self.place(one.path)) for one in commits]

        def work(found: Connection) -> None:
            rebuild.rebuild(found, listed, heads or {}, wanted, now)
            counter.rise_to(found, seen)

        self._database.write(work)
