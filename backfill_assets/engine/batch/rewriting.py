"""Rewrite published cells: one commit that names itself, so that it is made once, whichever process makes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.table_turn import refuse_foreign_commits
from backfill_assets.intervals.interval import Interval, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import BatchCommit, CommittedCell
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.warehouse.files.cell_files import whole_cells
from backfill_assets.warehouse.files.tables import Table
from backfill_assets.warehouse.log.ticket import Ticket
from backfill_assets.warehouse.rows.copies import copy_cells, find_commit, restore_cells
from backfill_assets.warehouse.spark.session import batch_session

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.environment import Layer, Pointer
    from backfill_assets.snapshots.publication import Intent
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.locks import CommitLock


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Cells of a published table that become what another table, or an older pin of it, holds.

    Attributes:
        source: where their rows come from.
        cells: all that the source answers for.
        differing: those whose rows are not what is published.
        emptied: cells that it takes away.
        together: every table into which the same publication copies.
        over: the delta_version of the published table that the source was opened over; None where that
            is not known.
    """

    source: Layer
    cells: IntervalSet
    differing: IntervalSet
    emptied: IntervalSet = field(default_factory=IntervalSet.empty)
    together: tuple[str, ...] = ()
    over: int | None = None


def rewritten(
    run: RunContext, intent: Intent, pointer: Pointer, rewrite: Rewrite, lock: CommitLock
) -> int:
    """Make a rewrite's commit, unless it is in the log already, and give its delta_version."""
    path = run.store.versions.version_path(pointer.version)
    commit = _commit(run, intent, pointer, rewrite, lock)
    known = find_commit(path, run.store.versions.known_head(pointer.version), commit.batch_id)
    if known is not None:
        refuse_foreign_commits(run, pointer.version, known.delta_version)
        return known.delta_version
    model = run.store.snapshots.get(pointer.fingerprint).declared
    known = run.store.versions.known_head(pointer.version)
    ticket = Ticket(path, pointer.version, lock.token, commit.to_json(), known)
    source, touched = rewrite.source, rewrite.differing | rewrite.emptied
    if source.version == pointer.version:
        done = restore_cells(
            lambda: batch_session(run.spark()),
            model,
            source.delta_version,
            rewrite.cells | rewrite.emptied,
            touched,
            ticket,
        )
    else:
        table = Table(run.store.versions.version_path(source.version), source.delta_version)
        same = {
            cell.cell: cell.content.rows
            for cell in commit.cells
            if cell.cell not in rewrite.differing
        }
        touched |= IntervalSet.of(same) - whole_cells(path, model.cadence, same)
        done = copy_cells(
            lambda: batch_session(run.spark()),
            model,
            table,
            rewrite.cells,
            touched,
            ticket,
            rewrite.over,
        )
    refuse_foreign_commits(run, pointer.version, done.delta_version)
    return done.delta_version


def _commit(
    run: RunContext, intent: Intent, pointer: Pointer, rewrite: Rewrite, lock: CommitLock
) -> BatchCommit:
    """Say all about a rewrite: what its cells hold is what they held where they come from."""
    hull = (rewrite.cells | rewrite.emptied).hull() or _NOWHERE
    source = rewrite.source
    records = [
        record
        for record in run.store.versions.ready_records(source.version, source.delta_version)
        if record.cell in rewrite.cells
    ]
    return BatchCommit(
        batch_id=f"{intent.plan_id}:{intent.number}:{pointer.model}",
        environment=pointer.environment,
        model=pointer.model,
        version=pointer.version,
        fingerprint=pointer.fingerprint,
        interval=hull,
        run_id=run.run_id,
        root_id=run.root_id,
        plan_id=intent.plan_id,
        reason=PROMOTED,
        attempt=1,
        built_at=intent.number,
        token=lock.token,
        started_at=run.clock(),
        inputs=_sources_read(run, {record.batch_id for record in records}),
        cells=tuple(CommittedCell(record.cell, record.content) for record in records),
        audits=(),
        emptied=rewrite.emptied,
        together=rewrite.together,
    )


def _sources_read(run: RunContext, batches: set[str]) -> tuple[InputPin, ...]:
    """Name where copied cells have read sources, each table at the oldest: all that the log will know of it."""
    oldest: dict[tuple[str, str], InputPin] = {}
    for batch_id in sorted(batches):
        row = run.store.batches.find(batch_id)
        for pin in row.inputs if row else ():
            table = pin.upstream, pin.table_id
            oldest_pin = oldest.get(table)
            if not pin.version and (
                oldest_pin is None or pin.delta_version < oldest_pin.delta_version
            ):
                oldest[table] = pin
    return tuple(oldest[table] for table in sorted(oldest))


_NOWHERE = Interval(instant_of(0), instant_of(1))
