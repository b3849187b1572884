"""Record a commit: cells become ready in the transaction that makes them visible."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.state import (
    audits,
    batch_rows,
    claims,
    layers,
    overtaking,
    owed,
    pointers,
    ready,
    snapshots,
    versions,
)
from backfill_assets.state.audits import Audited
from backfill_assets.state.counter import next_number
from backfill_assets.state.locks import CommitLock, check_lock

if TYPE_CHECKING:
    import sqlalchemy as sa

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.batch import BatchCommit
    from backfill_assets.snapshots.ready import ReadyRecord
    from backfill_assets.state.batch_rows import Ending


def record(
    connection: sa.Connection, commit: BatchCommit, lock: CommitLock, ending: Ending
) -> None:
    """Make a commit's cells ready and visible; a commit that is recorded already stays as it is.

    The entry is in the table's log, so what a publication has taken away since the batch looked is owed.

    Raises:
        LostLeaseError: the lock was taken over.
        RequestError: a later commit of the table is recorded already.
    """
    if ready.is_recorded(connection, commit, ending.delta_version):
        return
    check_lock(connection, lock)
    head = versions.known_head(connection, commit.version)
    if ending.delta_version <= head:
        raise RequestError(
            found=f"commit {ending.delta_version} of table {commit.version} is recorded although "
            f"the state has accounted for {head} already",
            expected="a later commit",
            do="Commits of a table are recorded in the order of its log; run `backfill state "
            "rebuild` into an empty state",
        )
    apply_commit(connection, commit, ending, next_number(connection))
    overtaking.owe_what_read_gone_cells(connection, commit, commit.built_at)


def apply_commit(connection: sa.Connection, commit: BatchCommit, ending: Ending, now: int) -> None:
    """Write all that follows from a commit, as of the counter's `now`."""
    commit = _trusted(connection, commit)
    at = ending.delta_version
    seen = ending.finished_at or commit.started_at
    ready.replace_records(connection, commit, at, now, _read_before(connection, commit))
    versions.set_known_head(connection, commit.version, at)
    pointers.raise_pin(connection, commit.environment, commit.version, at, seen)
    owed.settle_owed(connection, commit)
    of = Audited(commit.batch_id, commit.attempt, commit.model, commit.interval, seen)
    audits.save_audits(connection, of, commit.audits)
    row = batch_rows.find_batch(connection, commit.batch_id)
    # A batch that was opened again since then is still running: its row and its claims are its own.
    if row is None or row.built_at <= commit.built_at:
        batch_rows.commit_batch(connection, commit, ending)
        claims.drop_claims(connection, commit.batch_id)


def _trusted(connection: sa.Connection, commit: BatchCommit) -> BatchCommit:
    """Mark the checksums of a release that rounded floats: all of them, if the model is not known."""
    if commit.exact:
        return commit
    return commit.built_by(snapshots.model(connection, commit.fingerprint))


def _read_before(connection: sa.Connection, commit: BatchCommit) -> dict[Interval, ReadyRecord]:
    """Read what a table under the commit's own held in its cells until now.

    Of cells that the commit has computed also where a plan had to build them; of others that one has to build,
    rows that only moved make none ready.
    """
    at = pointers.pointer(connection, commit.environment, commit.model)
    if at is None or at.version != commit.version or not at.under:
        return {}
    beneath = replace(at, certain=at.certain - commit.stretches)
    return layers.records(connection, beneath, IntervalSet.of(each.cell for each in commit.cells))
