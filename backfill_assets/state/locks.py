"""Commit locks: commit and record are one critical section per table.

A lock is a row with a heartbeat and a fencing token. The token grows with every take, so a holder
that slept through a takeover differs from the one that holds the table now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.batch import RUNNING
from backfill_assets.state import heartbeats, pointers, promotions
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.tables import BATCHES, COMMIT_LOCKS
from backfill_assets.state.versions import TableLockedError, known_head, set_known_head

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.state.database import Database


class PlanLeasedError(BackfillAssetsError):
    """Another live run is at work on a plan, or on a launch that makes a plan."""

    def __init__(self, name: str, holder: str, since: datetime) -> None:
        self.name, self.holder, self.since = name, holder, since
        super().__init__(
            f"run {holder} is at work on {name} since {since.isoformat()}. Wait for it "
            "to end; if its process is dead, its lease expires by itself"
        )


class LostLeaseError(BackfillAssetsError):
    """The lock was taken over, so what its former holder says of the table no longer counts."""

    def __init__(self, lock: CommitLock, holder: str | None) -> None:
        self.lock, self.holder = lock, holder
        super().__init__(
            f"{lock.holder} no longer holds the commit lock of table {lock.version} (token "
            f"{lock.token}): it was silent for longer than the lease and "
            f"{holder or 'a run that has ended since'} took over. Nothing was recorded; run again"
        )


@dataclass(frozen=True, slots=True)
class CommitLock:
    """The right to commit to one table.

    Attributes:
        version: whose table.
        holder: who holds it: a batch or a run.
        token: larger than that of any holder before.
        known_head: the delta_version that the table's head must have, as far as the state knows.
        taken_over: its former holder never released it, and may wake up: fence it off first.
    """

    version: str
    holder: str
    token: int
    known_head: int
    taken_over: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a run to work on a plan or a launch.

    Attributes:
        holder: the run.
        until: when it lapses (UTC) if the holder is not heard of again.
    """

    holder: str
    until: datetime


class Locks(Aggregate[D]):
    """The right to commit to a table, or to work on a plan, and what is done under it.

    Each method is one transaction.
    """

    def lease(self, name: str) -> Lease | None:
        """Read which run is at work on something, and until when that counts."""
        heard_after = self._clock() - self._lease
        row = self._database.read(_row, name)
        is_held = _is_held(row, "", heard_after)
        return Lease(row.holder, row.heartbeat_at + self._lease) if is_held else None

    def take_commit_lock(
        self: Locks[Database], version: str, holder: str, *, above: int = 0
    ) -> CommitLock:
        """Take a table's commit lock, or take it over from a holder that went silent.

        Args:
            version: whose table.
            holder: a batch id, or a run id when no two threads of the run take the same table's.
            above: the largest token in the table's own log.

        Raises:
            TableLockedError: another live holder has it, or a live promotion names the table.
            PromotionPendingError: a promotion that names it died half-way: finish that first.
            UnknownVersionError: no such version.
        """

        def work(connection: sa.Connection) -> CommitLock:
            now = self._clock()
            promotions.check_closed(connection, version, holder, now - self._lease)
            head, row = known_head(connection, version), _row(connection, version)
            if _is_held(row, holder, now - self._lease):
                raise TableLockedError(version, row.holder, row.taken_at)
            token = _take(connection, version, holder, row, now, above)
            taken_over = row is not None and row.holder is not None
            return CommitLock(version, holder, token, head, taken_over)

        return self._database.write(work)

    def release_commit_lock(self: Locks[Database], lock: CommitLock) -> None:
        """Let others commit; does nothing when the lock was taken over."""
        ours = _update(lock.version).where(COMMIT_LOCKS.c.token == lock.token)
        self._database.write(lambda connection: connection.execute(ours.values(holder=None)))

    def advance_head(self: Locks[Database], lock: CommitLock, delta_version: int) -> None:
        """Account for a commit without a batch, a fence or a restore.

        Raises:
            LostLeaseError: the lock was taken over.
        """
        self._database.write(_advance_head, lock, delta_version)

    def follow_head(
        self: Locks[Database], lock: CommitLock, delta_version: int, now: datetime
    ) -> None:
        """Account for a commit that changes no row; pointers at the former head move to the new one.

        Raises:
            LostLeaseError: the lock was taken over.
        """

        def work(connection: sa.Connection) -> None:
            before = known_head(connection, lock.version)
            _advance_head(connection, lock, delta_version)
            pointers.follow_head(connection, lock.version, before, delta_version, now)

        self._database.write(work)

    def take_lease(self: Locks[Database], name: str, holder: str) -> None:
        """Take the right to work on a plan or a launch; a run's heartbeat keeps it.

        Raises:
            PlanLeasedError: another live run has it.
        """
        # A transaction of its own: the next one is rolled back when it refuses.
        self._database.write(
            lambda connection: heartbeats.bring_back(connection, self._clock(), self._lease)
        )

        def work(connection: sa.Connection) -> None:
            now = self._clock()
            row = _row(connection, name)
            if _is_held(row, holder, now - self._lease):
                raise PlanLeasedError(name, row.holder, row.taken_at)
            _take(connection, name, holder, row, now)

        self._database.write(work)

    def release_lease(self: Locks[Database], name: str, holder: str) -> None:
        """Let others work on a plan; does nothing when the lease was taken over."""
        self._database.write(release_all, (name,), holder)


def _is_held(row: sa.Row[Any] | None, holder: str, heard_after: datetime) -> TypeGuard[sa.Row[Any]]:
    """Whether another run has a lock, and is alive."""
    return row is not None and row.holder not in (None, holder) and row.heartbeat_at > heard_after


def _take(
    connection: sa.Connection,
    name: str,
    holder: str,
    row: sa.Row[Any] | None,
    now: datetime,
    above: int = 0,
) -> int:
    """Take a lock, or take it over, with a token above any before."""
    token = max(above, 0 if row is None else row.token) + 1
    values = {"holder": holder, "token": token, "taken_at": now, "heartbeat_at": now}
    if row is None:
        connection.execute(sa.insert(COMMIT_LOCKS).values({"version": name, **values}))
    else:
        connection.execute(_update(name).values(values))
    return token


def release_all(connection: sa.Connection, versions: Iterable[str], holder: str) -> None:
    """Let others commit to all these tables, where this holder kept the lock."""
    own_locks = sa.update(COMMIT_LOCKS).where(
        COMMIT_LOCKS.c.version.in_(sorted(versions)), COMMIT_LOCKS.c.holder == holder
    )
    connection.execute(own_locks.values(holder=None))


def check_lock(connection: sa.Connection, lock: CommitLock) -> None:
    """Make sure that the lock is still its holder's.

    Raises:
        LostLeaseError: it was taken over, or released.
    """
    row = _row(connection, lock.version)
    if row is None or row.token != lock.token or row.holder != lock.holder:
        raise LostLeaseError(lock, None if row is None else row.holder)


def _advance_head(connection: sa.Connection, lock: CommitLock, delta_version: int) -> None:
    check_lock(connection, lock)
    set_known_head(connection, lock.version, delta_version)


def refresh_locks(connection: sa.Connection, run_id: str, now: datetime) -> None:
    """Refresh the heartbeat of the locks that a run holds, or its batches that are not over."""
    at = BATCHES.c
    its_batches = sa.select(at.batch_id).where(at.run_id == run_id, at.status == RUNNING)
    condition = sa.or_(
        COMMIT_LOCKS.c.holder == run_id,
        COMMIT_LOCKS.c.holder.startswith(f"{run_id}/", autoescape=True),
        COMMIT_LOCKS.c.holder.in_(its_batches),
    )
    connection.execute(sa.update(COMMIT_LOCKS).where(condition).values(heartbeat_at=now))


def keep_token(connection: sa.Connection, version: str, token: int, now: datetime) -> None:
    """Keep the largest token of a table's own log, after a rebuild."""
    values = {"holder": None, "token": token, "taken_at": now, "heartbeat_at": now}
    connection.execute(sa.insert(COMMIT_LOCKS).values(version=version, **values))


def _row(connection: sa.Connection, version: str) -> sa.Row[Any] | None:
    query = sa.select(COMMIT_LOCKS).where(COMMIT_LOCKS.c.version == version)
    return connection.execute(query).first()


def _update(version: str) -> sa.Update:
    return sa.update(COMMIT_LOCKS).where(COMMIT_LOCKS.c.version == version)
