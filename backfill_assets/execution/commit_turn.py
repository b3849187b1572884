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
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.state.locks import TableLockedError
from backfill_assets.warehouse.commit import fence, is_ours, restore
from backfill_assets.warehouse.tables import head, last_token, logged_commits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.snapshots.batch import BatchRequest
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.state.store import Store

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


@contextmanager
def commit_turn(run: RunContext, request: BatchRequest) -> Iterator[CommitLock]:
    """Hold a table's commit lock, its head reconciled with the state.

    Raises:
        TableLockedError: another live batch holds it and did not give it back in time.
        LostClaimError: the batch was silent for so long that others took its cells.
        ForeignTableError: something else lies where the version's table belongs.
    """
    path = run.store.version_path(request.version)
    lock = _take(run.store, request, path)
    try:
        if lock.taken_over and head(path) >= 0:
            fence(run.spark(), path, app_id=request.version, token=lock.token)
        _reconcile(run, path, lock)
        run.store.check_claims(request.batch_id)
        yield lock
    finally:
        run.store.release_commit_lock(lock)


def _take(store: Store, request: BatchRequest, path: str) -> CommitLock:
    patience = Retrying(
        retry=retry_if_exception_type(TableLockedError),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        stop=stop_after_delay(LONGEST_WAIT),
        reraise=True,
    )
    above = last_token(path, request.version)
    return patience(store.take_commit_lock, request.version, request.batch_id, above=above)


def _reconcile(run: RunContext, path: str, lock: CommitLock) -> None:
    """Adopt or take back every commit that the state does not know, oldest first."""
    for logged in logged_commits(path, run.store.known_head(lock.version)):
        commit = BatchCommit.from_json(logged.metadata)
        if commit is not None and commit.version == lock.version:
            run.store.record(
                commit,
                lock,
                logged.delta_version,
                bytes_written=logged.bytes_added,
                finished_at=run.clock(),
            )
        elif is_ours(logged.metadata):
            run.store.advance_head(lock, logged.delta_version)
        else:
            _take_back(run, path, lock)
            return


def _take_back(run: RunContext, path: str, lock: CommitLock) -> None:
    """Bring the table back to the last head that the state knows: nobody audited what follows."""
    known = run.store.known_head(lock.version)
    if known < 0:
        raise ForeignTableError(path)
    restored = restore(run.spark(), path, known, app_id=lock.version, token=lock.token)
    run.store.advance_head(lock, restored.delta_version)
