"""Read the state: what is known of every environment, table, cell and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.state import (
    audits,
    batches,
    claims,
    environments,
    locks,
    owed,
    pointers,
    ready,
    snapshots,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from sqlalchemy import Connection

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.content import Content
    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.ready import ReadyRecord
    from backfill_assets.snapshots.state_view import StateView
    from backfill_assets.state.audits import AuditRow
    from backfill_assets.state.batches import BatchRow
    from backfill_assets.state.database import Database
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.state.ready import Builder
    from backfill_assets.state.snapshots import StoredSnapshot


class StateReader:
    """The questions that a store answers; each is one read transaction."""

    def __init__(self, database: Database, clock: Callable[[], datetime], lease: timedelta) -> None:
        self._database = database
        self._clock = clock
        self._lease = lease

    def environment(self, name: str) -> Environment:
        """Read an environment; `UnknownEnvironmentError` lists those that exist."""
        return self._database.read(lambda found: environments.environment(found, name))

    def snapshot(self, fingerprint_id: str) -> StoredSnapshot:
        """Read a snapshot; `UnknownSnapshotError` when it was never saved."""
        return self._database.read(lambda found: snapshots.snapshot(found, fingerprint_id))

    def snapshot_definition(self, fingerprint_id: str) -> str:
        """Read the model of a snapshot as text; `UnknownSnapshotError` when it was never saved."""
        return self.snapshot(fingerprint_id).definition

    def pointers(self, environment: str) -> dict[str, Pointer]:
        """Read all pointers of an environment, by model."""
        return self._database.read(lambda found: pointers.pointers(found, environment))

    def version_path(self, version: str) -> str:
        """Read where a version's table lies; `UnknownVersionError` when there is none."""
        return self._database.read(lambda found: pointers.version_path(found, version))

    def known_head(self, version: str) -> int:
        """Read the last delta_version that the state accounts for; -1 before the first commit."""
        return self._database.read(lambda found: pointers.known_head(found, version))

    def check_claims(self, batch_id: str) -> None:
        """Make sure, with the commit lock in hand, that a batch still holds its cells.

        Raises:
            LostClaimError: it was silent for longer than the lease and another took them.
        """
        self._database.read(lambda found: claims.check_claims(found, batch_id))

    def check_lock(self, lock: CommitLock) -> None:
        """Make sure that a lock is still ours; `LostLeaseError` when it is not."""
        self._database.read(lambda found: locks.check_lock(found, lock))

    def view(self, environment: str) -> StateView:
        """Draw the picture of an environment that planning works on."""
        heard_after = self._clock() - self._lease
        return self._database.read(lambda found: view.view(found, environment, heard_after))

    def content_at_pin(
        self, environment: str, model: str, cells: IntervalSet
    ) -> dict[Interval, Content]:
        """Read what the ready ones of these cells hold, at an environment's pin."""

        def work(found: Connection) -> dict[Interval, Content]:
            at = pointers.pointer(found, environment, model)
            return {} if at is None else ready.contents(found, at.version, at.delta_version, cells)

        return self._database.read(work)

    def ready_records(self, version: str, at: int | None = None) -> list[ReadyRecord]:
        """Read a version's records that are valid at a delta_version; None is the latest."""
        return self._database.read(lambda found: ready.ready_records(found, version, at))

    def built_by(self, version: str, at: int | None = None) -> dict[Interval, Builder]:
        """Read who built each cell that is ready at a delta_version; None is the latest."""
        return self._database.read(lambda found: ready.built_by(found, version, at))

    def watermark(self, version: str) -> datetime | None:
        """Read where the last ready cell of a version ends."""
        return self._database.read(lambda found: ready.watermark(found, version))

    def batches(self, *, model: str | None = None, limit: int | None = None) -> list[BatchRow]:
        """Read batches, the latest first."""
        return self._database.read(lambda found: batches.batches(found, model, limit))

    def batch(self, batch_id: str) -> BatchRow:
        """Read one batch; `UnknownBatchError` when it was never opened."""
        return self._database.read(lambda found: batches.batch(found, batch_id))

    def attempts(self, version: str, interval: Interval) -> int:
        """Count how often a batch over exactly this interval was tried."""
        return self._database.read(lambda found: batches.attempts(found, version, interval))

    def audit_results(
        self,
        *,
        model: str | None = None,
        batch_id: str | None = None,
        limit: int | None = None,
    ) -> list[AuditRow]:
        """Read audit results, the latest first."""
        return self._database.read(
            lambda found: audits.audit_results(found, model, batch_id, limit)
        )

    def owed(self, environment: str) -> dict[str, IntervalSet]:
        """Read the cells that are owed in the versions that an environment reads, by model."""
        return self._database.read(lambda found: owed.owed(found, environment))
