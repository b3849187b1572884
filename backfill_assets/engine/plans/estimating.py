"""What an estimate rests on: recorded batches and operations, else sizes; and the prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.batch.requests import ADOPTED
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.estimate import BatchFact, Known, TableSize, estimate
from backfill_assets.planning.plan.overhead import OperationFact
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.places import located
from backfill_assets.snapshots.slots import ALL
from backfill_assets.warehouse.files.table_size import source_bytes
from backfill_assets.warehouse.log.delta_log import CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.timing import Timing
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.store import Store

_RECENT, _RECENT_OF_ALL = 200, 1000
_OPERATIONS = 50


def estimated(project: Project, plan: Plan) -> Plan:
    """Fill in what a plan will take; nothing is looked up for a plan that builds nothing."""
    building = [planned for planned in plan.models if planned.batches]
    if not building:
        return plan
    store, warm = project.store, _warm(project.store)
    history = {planned.model: _facts(project, planned.model, warm) for planned in building}
    read = sorted({each.upstream for planned in building for each in planned.reads})
    known = Known(
        history=history,
        sizes={name: size for name in read if (size := _size(project, plan, name))},
        prices=project.terms.prices,
        batches_at_once=store.limits.by_scope().get(ALL, project.batches_at_once),
        operations=tuple(map(_operation, store.plans.timings(limit=_OPERATIONS))),
    )
    return estimate(plan, known)


def _warm(store: Store) -> dict[str, datetime]:
    """Tell when the first batch of each run ended: what began before that was slowed by its start."""
    ends: dict[str, datetime] = {}
    for row in store.batches.latest(limit=_RECENT_OF_ALL):
        if row.finished_at is not None:
            ends[row.run_id] = min(row.finished_at, ends.get(row.run_id, row.finished_at))
    return ends


def _facts(project: Project, model: str, warm: Mapping[str, datetime]) -> tuple[BatchFact, ...]:
    """Give the batches of a model that its query was run for."""
    graph, rows = project.loaded.graph, project.store.batches.latest(model=model, limit=_RECENT)
    return tuple(
        _fact(graph, row, cold=row.run_id in warm and row.started_at < warm[row.run_id])
        for row in rows
        if row.is_committed and row.finished_at and row.reason not in (EMPTY, ADOPTED)
    )


def _fact(graph: Graph, row: BatchRow, *, cold: bool) -> BatchFact:
    ended = row.finished_at or row.started_at
    model = graph.models.get(row.model)
    return BatchFact(
        seconds=(ended - row.started_at).total_seconds(),
        cells=model.cadence.count(row.stretches) if model else 1,
        rows=row.rows or 0,
        bytes=row.bytes_written or 0,
        cold=cold,
    )


def _size(project: Project, plan: Plan, name: str) -> TableSize | None:
    """Give the size of what is read: of a source by its log, of a model by its batches."""
    declared = project.loaded.graph.sources.get(name)
    if declared is None:
        return _built(project.store, name)
    reads = (read.cells for model in plan.models for read in model.reads if read.upstream == name)
    cells = IntervalSet.union_all(reads)
    column = declared.times.event if declared.times else None
    path = located(declared.path, project.data_root)
    try:
        size = source_bytes(path, column=column, cadence=declared.cadence, cells=cells)
    except CorruptTableError:
        return None  # the batch that reads it says so
    return TableSize(size, cells) if size and cells else None


def _built(store: Store, model: str) -> TableSize | None:
    """Give the size of a model by its last batches; of a cell that several have built, the last one counts."""
    size, cells = 0.0, IntervalSet.empty()
    for row in store.batches.latest(model=model, limit=_RECENT):
        if row.bytes_written:
            new = row.stretches - cells
            size += row.bytes_written * new.seconds() / row.stretches.seconds()
            cells |= new
    return TableSize(round(size), cells) if cells else None


def _operation(timing: Timing) -> OperationFact:
    """Split the time that an operation took beside its batches into starting, looking and the rest."""
    steps = timing.steps
    apart = (Phase.STARTING.value, Phase.LOOKING.value, Phase.BUILDING.value)
    starting, looking, _ = (float(steps.get(name, 0.0)) for name in apart)
    return OperationFact(
        verb=timing.verb,
        starting=starting,
        looking=looking,
        rest=sum(float(took) for name, took in steps.items() if name not in apart),
        cells=timing.cells,
        by_rows=timing.by_rows,
    )
