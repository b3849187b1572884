"""A turn at one table: its commit lock, and its head made the one that the state knows.

Delta's history is linear, so a pin is a prefix of it. Before a holder commits, the head must be the
one that the state knows; if it isn't, the unknown commits are adopted (audited batches of ours whose
recording was cut off, or which a restored state has forgotten) or taken back (anything else).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from tenacity import stop_after_delay

from backfill_assets.engine.project.iceberg import describe_commit, describe_head
from backfill_assets.engine.project.waiting import until_free
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.snapshots.environment import plan_of
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.snapshots.stored_plan import PlanEventKind
from backfill_assets.state.locks import TableLockedError
from backfill_assets.state.plans import UnknownPlanError
from backfill_assets.warehouse.files.housekeeping import (
    fence,
    is_ours,
    keeps_rows,
    restore,
    restored_to,
)
from backfill_assets.warehouse.log.delta_log import (
    WITHOUT_BACKUP,
    CorruptTableError,
    head,
    last_token,
    logged_commits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.warehouse.log.delta_log import LoggedCommit


LONGEST_WAIT = 1800.0
"""Seconds that a batch waits for its turn before it gives up, saying who holds the lock."""


class ForeignTableError(BackfillAssetsError):
    """A table lies where a version's own table would be made."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"the table at '{path}' was not created by this project; nothing was written. Move it away "
            "and run again: a new table is created for the model. To keep its rows, run "
            "`backfill adopt TABLE MODEL` with the path to which you moved it"
        )


class OvertakenError(BackfillAssetsError):
    """A commit that the state doesn't know slipped in right before a batch's own."""

    def __init__(self, path: str, delta_version: int) -> None:
        self.path, self.delta_version = path, delta_version
        super().__init__(
            f"another writer committed to {path} without its commit lock, just before delta_version "
            f"{delta_version} of this batch. Nothing was recorded, and readers do not see that "
            "commit; find out which program writes there, and run again"
        )


def take(run: RunContext, version: str, holder: str) -> CommitLock:
    """Take a table's commit lock when it is free; its holder before can't commit any more.

    Raises:
        TableLockedError: another live holder has it and did not give it back in time.
        PromotionPendingError: an unfinished promotion comes first.
    """
    path = run.store.versions.version_path(version)
    free, token = (
        until_free(TableLockedError, stop_after_delay(LONGEST_WAIT)),
        last_token(path, version),
    )
    lock = free(run.store.locks.take_commit_lock, version, holder, above=token)
    try:
        _fence_off(path, lock)
    except BaseException:
        give_back(run, lock)
        raise
    return lock


def give_back(run: RunContext, lock: CommitLock) -> None:
    """Let others commit to a table: now, or once the state can be told."""
    run.tell(partial(run.store.locks.release_commit_lock, lock))


def _fence_off(path: str, lock: CommitLock) -> None:
    """Keep the former holder of a lock that was taken over from committing, should it wake up."""
    if lock.taken_over and head(path) >= 0 and last_token(path, lock.version) < lock.token:
        fence(path, app_id=lock.version, token=lock.token)


def reconcile(run: RunContext, lock: CommitLock) -> None:
    """Adopt or take back every commit that the state does not know, oldest first.

    A former holder that wakes up may have made the table since the lock was taken over, so it is fenced
    off here as well. What was taken back already counts together with the commit that did so: known
    for itself, its rows would be what the next holder brings the table back to.

    Raises:
        ForeignTableError: something else lies where the version's table belongs.
        RequestError: there is no table, though the state knows its commits.
        CorruptTableError: the table's log is damaged, or lacks commits that the state knows.
    """
    path = run.store.versions.version_path(lock.version)
    known_head, newest = run.store.versions.known_head(lock.version), head(path)
    if newest < 0 <= known_head:
        plan_id = plan_of(run.store.versions.owner(lock.version) or "")
        raise RequestError(
            found=f"the table at {path} is missing, though the state records it up to delta_version "
            f"{known_head}. Nothing was written",
            do=f"`backfill abandon {plan_id}` gives up the plan that it was built for"
            if plan_id
            else "Set BACKFILL_DATA_DIR to the folder that belongs to this state, or restore the table "
            f"from a backup. {WITHOUT_BACKUP}",
        )
    if newest < known_head:
        ending = f"it ends at commit {newest}, though commit {known_head} is recorded"
        raise CorruptTableError(path=path, found=ending)
    _fence_off(path, lock)
    unknown = logged_commits(path, known_head)
    gone = _taken_back(unknown)
    for logged in unknown:
        if logged.delta_version in gone:
            continue
        if keeps_rows(logged.metadata):
            describe_head(run, lock.version, logged.delta_version)
            run.store.locks.follow_head(lock, logged.delta_version, run.clock())
        elif _is_kept(logged, known_head):
            run.store.locks.advance_head(lock, logged.delta_version)
        elif not _is_adopted(run, lock, logged):
            take_back(run, lock)
            _tell_copies(run, unknown)
            break


@contextmanager
def reconciled(run: RunContext, lock: CommitLock) -> Iterator[CommitLock]:
    """Hold a commit lock over a table that is reconciled, and give it back."""
    try:
        reconcile(run, lock)
        yield lock
    finally:
        give_back(run, lock)


def _tell_copies(run: RunContext, commits: tuple[LoggedCommit, ...]) -> None:
    """Tell of each publication whose copy was taken back, in the history of its plan."""
    for logged in commits:
        commit = BatchCommit.from_json(logged.metadata)
        if commit is None or commit.reason != PROMOTED or commit.plan_id is None:
            continue
        why = (
            f"commit {logged.delta_version} of {commit.model} belongs to no publication in the state, "
            "as after an older backup was restored"
        )
        detail = {"model": commit.model, "delta_version": logged.delta_version}
        with suppress(UnknownPlanError):  # the backup is older than the plan
            run.store.plans.tell(
                commit.plan_id, PlanEventKind.TAKEN_BACK, who=run.run_id, why=why, detail=detail
            )


def _taken_back(commits: tuple[LoggedCommit, ...]) -> set[int]:
    """Name the commits that a later one has taken back already: they count no more."""
    gone: set[int] = set()
    for commit in reversed(commits):
        kept = restored_to(commit.metadata)
        if kept is not None and commit.delta_version not in gone:
            gone.update(range(kept + 1, commit.delta_version))
    return gone


def _is_kept(logged: LoggedCommit, known_head: int) -> bool:
    """Whether a commit is ours and holds no batch, and takes nothing away that the state knows."""
    kept = restored_to(logged.metadata)
    return is_ours(logged.metadata) and (kept is None or kept >= known_head)


def _is_adopted(run: RunContext, lock: CommitLock, logged: LoggedCommit) -> bool:
    """Record a commit that the state does not know, if it is a batch's that may count."""
    commit = BatchCommit.from_json(logged.metadata)
    if commit is None or commit.version != lock.version:
        return False
    describe_commit(run, commit.model, lock.version, logged.delta_version)
    return run.store.batches.adopt(
        commit,
        lock,
        logged.delta_version,
        bytes_written=None if commit.reason == PROMOTED else logged.bytes_added,
        finished_at=run.clock(),
    )


def refuse_foreign_commits(run: RunContext, version: str, delta_version: int) -> None:
    """Refuse to record a commit that follows on a commit of another writer.

    Raises:
        OvertakenError: something that is not ours stands between it and what the state knows.
    """
    path, known_head = (
        run.store.versions.version_path(version),
        run.store.versions.known_head(version),
    )
    if delta_version <= known_head + 1:
        return
    between = logged_commits(path, known_head)[: delta_version - known_head - 1]
    if not all(is_ours(commit.metadata) for commit in between):
        raise OvertakenError(path, delta_version)


def take_back(run: RunContext, lock: CommitLock) -> None:
    """Bring a table back to the last head that the state knows: nothing that follows counts.

    Raises:
        ForeignTableError: nothing of the table is known.
    """
    path, known_head = (
        run.store.versions.version_path(lock.version),
        run.store.versions.known_head(lock.version),
    )
    if known_head < 0:
        raise ForeignTableError(path)
    restored = restore(path, known_head, app_id=lock.version, token=lock.token)
    run.store.locks.advance_head(lock, restored.delta_version)
