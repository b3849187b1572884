"""The one write path: `run_batch` runs every batch, of every entrance.

    pin the inputs -> compute into files -> one aggregation over them -> judge -> commit -> record

The audited files are the published files. If a blocking audit fails, the batch ends before the commit, so rows
that failed are never in a table. The commit names the files in the table's log; commit and record happen under
the table's commit lock. If the process dies

    before the commit   the table is as it was. The claims lapse with the lease, the next run computes the cells
                        again, and `gc` deletes the files that no log names once they are a day old.
    before the record   the table has a commit that no reader sees and that holds all fields of its record. The
                        next holder of the lock records it; a fill takes the lock before it asks for gaps.

The next holder also finishes a publication that died at the table (`engine.plans.publishing`), and takes back
commits that are not ours.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.audited import AuditsFailedError
from backfill_assets.engine.batch.batch_inputs import target_table
from backfill_assets.engine.batch.commit_turn import unchanged
from backfill_assets.engine.batch.computing import computing
from backfill_assets.engine.batch.effects import effects_of
from backfill_assets.engine.batch.failure_kinds import kind_of, sentence_of_batch
from backfill_assets.engine.batch.kept_rows import tell_kept_rows
from backfill_assets.engine.batch.opening_batch import open_when_free
from backfill_assets.engine.batch.unpromoted import refuse_unpromoted_columns
from backfill_assets.engine.project.cancelling import BatchTooOldError, RunCancelledError
from backfill_assets.engine.project.events import (
    BatchSeconds,
    Committed,
    Event,
    Failed,
    Skipped,
    Started,
    Waiting,
)
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.audits_of import audits_of
from backfill_assets.snapshots.batch import EMPTY, BatchCommit
from backfill_assets.state.batch_rows import UnknownBatchError
from backfill_assets.state.database import StateCommitUnknownError
from backfill_assets.state.opening import CellsReadyError
from backfill_assets.state.queue import PlanPausedOrStoppedError
from backfill_assets.warehouse.files.collection import GRACE
from backfill_assets.warehouse.log.ticket import Ticket
from backfill_assets.warehouse.spark.spark_errors import error_of_ours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch


def run_batch(run: RunContext, request: BatchRequest) -> Iterator[Event]:
    """Compute, audit, commit and record one batch, and tell how it ended.

    Nothing is raised for a batch that fails: the failure is recorded, its cells are given back, and
    other batches go on.
    """
    try:
        opened = yield from open_when_free(run, request)
    except CellsReadyError as error:
        yield Skipped(request.model, error.built_by)
    except PlanPausedOrStoppedError as error:
        yield Waiting(request.model, request.stretches, error.words)
    except StateCommitUnknownError as error:
        yield _failed(run, request, error)
    except BackfillAssetsError as error:
        kind = kind_of(error)
        yield Failed(request.model, request.batch_id, request.stretches, str(error), kind=kind)
    else:
        yield Started(request.model, request.batch_id, request.stretches)
        yield _ended(run, opened)


def _ended(run: RunContext, opened: OpenBatch) -> Committed | Skipped | Failed:
    """Write an open batch, and record its failure if it does not commit."""
    request = opened.request
    try:
        return _write(run, opened)
    except AuditsFailedError as error:
        return _failed(run, request, error, error.results)
    except CellsReadyError as error:
        _failed(run, request, error)
        return Skipped(request.model, error.built_by)
    except Exception as error:  # noqa: BLE001 - whatever a query raises, its failure must be recorded
        return _failed(
            run, request, error_of_ours(error, run.store.versions.version_path(request.version))
        )
    except BaseException:
        _failed(run, request, RunCancelledError(run.run_id))
        raise


def _write(run: RunContext, opened: OpenBatch) -> Committed:
    request, model = opened.request, run.graph.model(opened.request.model)
    if run.frozen is not None:
        run.frozen.check()
    refuse_unpromoted_columns(run, model)
    if request.reason != EMPTY:
        run.spark()  # before the first lap, so that no batch's time includes the start of Spark
    laps, started_at, effects = [monotonic()], run.clock(), effects_of(run)
    with computing(run, opened, started_at) as (flight, batch):
        laps.append(monotonic())
        flight.check()
        if batch.moved:
            run.store.batches.claim_more(request.batch_id, batch.moved)
        # Cells that are recorded without being computed have no rows to audit.
        audits = () if request.reason == EMPTY else audits_of(model)
        profiles, results = effects.audited(run, batch, audits)
        laps.append(monotonic())
        tell_kept_rows(run, request, batch.kept)
        with effects.turn(run, opened) as lock:
            flight.commits()
            # After that time `gc` may delete the batch's files.
            if run.clock() - started_at >= GRACE:
                raise BatchTooOldError(request.batch_id, GRACE)
            commit = BatchCommit.of(opened, lock.token, started_at, profiles, results)
            target_now = target_table(run, model, run.pointer(model))
            ticket = Ticket(
                batch.target.path,
                request.version,
                lock.token,
                commit.to_json(),
                target_now.delta_version,
            )
            done = effects.commit(
                batch, ticket, target_now, unchanged(run, request.version, profiles)
            )
            laps.append(monotonic())
            effects.record(run, lock, commit, done)
            laps.append(monotonic())
    return Committed(
        model=model.name,
        batch_id=request.batch_id,
        cells=request.stretches,
        delta_version=done.delta_version,
        contents={profile.cell: profile.content for profile in profiles},
        audits=results,
        rows=sum(profile.content.rows for profile in profiles),
        timing=BatchSeconds(*(after - before for before, after in pairwise(laps))),
    )


def _failed(
    run: RunContext, request: BatchRequest, error: Exception, audits: tuple[AuditResult, ...] = ()
) -> Failed:
    """Record the failure and release the claims; nothing of a batch that was never opened, as far as is known.

    If the state can't be reached, the message says so, and the run's heartbeat records the failure later.
    """
    failure = sentence_of_batch(run.graph.model(request.model), request.stretches, error)
    kind, ended_at = kind_of(error), run.clock()

    def record() -> None:
        with suppress(UnknownBatchError):  # the state was lost before it was opened
            run.store.batches.fail_batch(
                request.batch_id, error=failure, audits=audits, finished_at=ended_at, failure=kind
            )

    why = run.tell(record)
    told = f"{failure} (and that could not be recorded: {why})" if why else failure
    return Failed(request.model, request.batch_id, request.stretches, told, audits, kind)
