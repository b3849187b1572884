"""The critical section of one table: between taking its commit lock and giving it back.

Delta's history is linear, so a pin is a prefix of it. Before a holder commits, the head must be the
one that the state knows; if it isn't, the unknown commits are adopted (audited batches of ours whose
recording was cut off) or taken back (anything else).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import GAP, BatchCommit
from backfill_assets.state.locks import TableLockedError
from backfill_assets.state.opening import CellsReadyError
from backfill_assets.warehouse.commit import fence, is_ours, restore
from backfill_assets.warehouse.tables import (
    CorruptTableError,
    head,
    last_token,
    logged_commits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import BatchRequest
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.warehouse.commit import Committed

LONGEST_WAIT = 1800.0
"""Seconds that a batch waits for its turn before it gives up, saying who holds the lock."""


class ForeignTableError(BackfillAssetsError):
    """A table lies where a version's own table would be made."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"there is a table at '{path}' that no batch of ours began; move it away, or adopt it, "
            "before this version is filled"
        )


class OvertakenError(BackfillAssetsError):
    """A commit that the state doesn't know slipped in right before a batch's own."""

    def __init__(self, path: str, delta_version: int) -> None:
        self.path, self.delta_version = path, delta_version
        super().__init__(
            f"somebody committed to {path} without its commit lock, just before delta_version "
            f"{delta_version} of a batch of ours. Nothing was recorded and readers see nothing of "
            "it; find out who writes there, and run again"
        )


@contextmanager
def commit_turn(run: RunContext, request: BatchRequest) -> Iterator[CommitLock]:
    """Hold a table's commit lock, its head reconciled with the state.

    Raises:
        TableLockedError: another live batch holds it and did not give it back in time.
        LostClaimError: the batch was silent for so long that others took its cells.
        CellsReadyError: a gap's cells were committed by a process that died before recording it.
        ForeignTableError: something else lies where the version's table belongs.
    """
    with _turn(run, request.version, request.batch_id) as (lock, adopted):
        run.store.check_claims(request.batch_id)
        if adopted and request.reason == GAP:
            _refuse_ready(run, request)
        yield lock


def settle(run: RunContext, model: Model) -> None:
    """Account for what others left in a model's table, before anybody asks what it lacks.

    Raises:
        TableLockedError: a live batch holds the table and did not give it back in time.
        ForeignTableError: something else lies where the version's table belongs.
        CorruptTableError: the table's log is damaged, or lacks commits that the state knows.
    """
    version = run.pointer(model).version
    if head(run.table(model)) != run.store.known_head(version):
        with _turn(run, version, run.run_id):
            pass


def record(run: RunContext, lock: CommitLock, commit: BatchCommit, done: Committed) -> None:
    """Record a batch's commit, when it follows directly on what the state knows.

    Raises:
        OvertakenError: something stands between; whoever takes the table next sorts it out.
        LostLeaseError: the lock was taken over.
    """
    path, known = run.store.version_path(lock.version), run.store.known_head(lock.version)
    if done.delta_version != known + 1:
        between = logged_commits(path, known)[: done.delta_version - known - 1]
        if not all(is_ours(one.metadata) for one in between):
            raise OvertakenError(path, done.delta_version)
    run.store.record(
        commit, lock, done.delta_version, bytes_written=done.bytes, finished_at=run.clock()
    )


@contextmanager
def _turn(run: RunContext, version: str, holder: str) -> Iterator[tuple[CommitLock, bool]]:
    """Hold the lock of a reconciled table, and tell whether commits were adopted."""
    path = run.store.version_path(version)
    lock = _take(run, version, holder, path)
    try:
        if lock.taken_over and head(path) >= 0:
            fence(run.spark(), path, app_id=version, token=lock.token)
        yield lock, _reconcile(run, path, lock)
    finally:
        run.store.release_commit_lock(lock)


def _take(run: RunContext, version: str, holder: str, path: str) -> CommitLock:
    patience = Retrying(
        retry=retry_if_exception_type(TableLockedError),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        stop=stop_after_delay(LONGEST_WAIT),
        reraise=True,
    )
    return patience(run.store.take_commit_lock, version, holder, above=last_token(path, version))


def _refuse_ready(run: RunContext, request: BatchRequest) -> None:
    """Leave cells alone that became ready by adoption: they were computed and audited already."""
    wanted = IntervalSet.of([request.interval])
    built = run.store.built_by(request.version)
    ready = {cell: one.batch_id for cell, one in built.items() if cell in wanted}
    if ready:
        raise CellsReadyError(request.model, ready)


def _reconcile(run: RunContext, path: str, lock: CommitLock) -> bool:
    """Adopt or take back every commit that the state does not know, oldest first."""
    adopted, known, newest = False, run.store.known_head(lock.version), head(path)
    if newest < known:
        found = f"it ends at commit {newest}, though commit {known} is recorded"
        raise CorruptTableError(path=path, found=found)
    for logged in logged_commits(path, known):
        commit = BatchCommit.from_json(logged.metadata)
        if commit is not None and commit.version == lock.version:
            run.store.record(
                commit,
                lock,
                logged.delta_version,
                bytes_written=logged.bytes_added,
                finished_at=run.clock(),
            )
            adopted = True
        elif is_ours(logged.metadata):
            run.store.advance_head(lock, logged.delta_version)
        else:
            _take_back(run, path, lock)
            break
    return adopted


def _take_back(run: RunContext, path: str, lock: CommitLock) -> None:
    """Bring the table back to the last head that the state knows: nobody audited what follows."""
    known = run.store.known_head(lock.version)
    if known < 0:
        raise ForeignTableError(path)
    restored = restore(run.spark(), path, known, app_id=lock.version, token=lock.token)
    run.store.advance_head(lock, restored.delta_version)
