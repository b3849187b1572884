"""The critical section of a batch: between taking its table's commit lock and giving it back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.table_turn import reconciled, refuse_foreign_commits, take
from backfill_assets.engine.plans.publishing import finish_publication
from backfill_assets.engine.project.iceberg import describe_commit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.state.promotions import PromotionPendingError
from backfill_assets.warehouse.log.delta_log import head

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import CellProfile
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import BatchCommit, OpenBatch
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.warehouse.log.ticket import FoundCommit


@contextmanager
def commit_turn(run: RunContext, opened: OpenBatch) -> Iterator[CommitLock]:
    """Hold a table's commit lock, its head reconciled with the state.

    Raises:
        TableLockedError: another live batch holds it and did not give it back in time.
        LostClaimError: the batch was silent for so long that others took its cells.
        InputsMovedError: a promotion has changed what the batch has read.
        CellsReadyError: a gap's cells are ready by now, by a commit that was recorded late, or here.
        ForeignTableError: something else lies where the version's table belongs.
    """
    request = opened.request
    with reconciled(run, _taken(run, request.version, request.batch_id)) as lock:
        run.store.batches.check_claims(request.batch_id)
        run.store.batches.check_inputs(opened)
        yield lock


def unchanged(
    run: RunContext, version: str, profiles: Sequence[CellProfile]
) -> dict[Interval, int]:
    """Count the rows of the cells whose own table holds the very content that was computed again."""
    cells = IntervalSet.of(profile.cell for profile in profiles)
    contents = run.store.versions.held_contents(version, cells)
    same = (profile for profile in profiles if contents.get(profile.cell) == profile.content)
    return {profile.cell: profile.content.rows for profile in same}


def reconcile_table(run: RunContext, model: Model) -> None:
    """Account for what others left in a model's table, before its gaps are asked for.

    What it reads comes first: a commit counts when the state knows the commits that it has read.

    Raises:
        TableLockedError: a live batch holds the table and did not give it back in time.
        ForeignTableError: something else lies where the version's table belongs.
        CorruptTableError: the table's log is damaged, or lacks commits that the state knows.
    """
    version = run.pointer(model).version
    if head(run.table(model)) != run.store.versions.known_head(version):
        for upstream in _own_upstreams(run, model):
            reconcile_table(run, upstream)
        # Not as the run itself, which may be finishing a promotion over this table.
        with reconciled(run, _taken(run, version, f"{run.run_id}/{version}")):
            pass


def reconcile_tables(run: RunContext, versions: Collection[str]) -> None:
    """Account for what others left in some of an environment's tables, upstream first.

    A publication takes its locks in the order of names, in which a commit could be taken back only
    because the one that it has read is not recorded yet.

    Raises:
        TableLockedError: a live batch holds a table and did not give it back in time.
        ForeignTableError: something else lies where a version's table belongs.
        CorruptTableError: a table's log is damaged, or lacks commits that the state knows.
    """
    for name in run.graph.order:
        at = run.pointers.get(name)
        if at is not None and at.version in versions:
            reconcile_table(run, run.graph.model(name))


def _own_upstreams(run: RunContext, model: Model) -> Iterator[Model]:
    """Give the other models that a model reads and whose tables the run's environment writes."""
    for name in sorted({upstream.name for upstream in model.reads} - {model.name}):
        upstream_model, at = run.graph.models.get(name), run.pointers.get(name)
        if upstream_model is None or at is None:
            continue
        if run.store.versions.owner(at.version) in (None, run.environment.name):
            yield upstream_model


def record(run: RunContext, lock: CommitLock, commit: BatchCommit, done: FoundCommit) -> None:
    """Record a batch's commit, when it follows directly on what the state knows.

    Raises:
        OvertakenError: something stands between; the next holder of the lock accounts for it.
        LostLeaseError: the lock was taken over.
    """
    refuse_foreign_commits(run, lock.version, done.delta_version)
    describe_commit(run, commit.model, lock.version, done.delta_version)
    run.store.batches.record(
        commit, lock, done.delta_version, bytes_written=done.bytes, finished_at=run.clock()
    )


def _taken(run: RunContext, version: str, holder: str) -> CommitLock:
    """Take the lock; a promotion that died over this table is finished first."""
    while True:
        try:
            return take(run, version, holder)
        except PromotionPendingError as pending:
            finish_publication(run, pending.plan_id)
