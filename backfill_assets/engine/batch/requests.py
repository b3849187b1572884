"""Build a batch's request: its cells, what they read, and where its sources stand right now."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from backfill_assets.models.cells import cells_read
from backfill_assets.snapshots.batch import GAP, BatchRequest
from backfill_assets.snapshots.places import located
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.snapshots.slots import Slots
from backfill_assets.warehouse.log.delta_log import head, table_id

RERUN = "rerun"
"""The reason of a batch that builds published cells again, because a person asked for them."""

ADOPTED = "adopted"
"""The reason of a batch that copies rows that were computed elsewhere."""

REFRESH = "refresh"
"""The reason of a batch that builds stale cells of the late window again, of a model without readers."""

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source


def batch_request(
    run: RunContext,
    model: Model,
    stretches: IntervalSet,
    *,
    reason: str = GAP,
    seen: int | None = None,
) -> BatchRequest:
    """Say what a batch over some cells asks of the state; see `BatchRequest`."""
    pointer = run.pointer(model)
    attempt = run.store.batches.attempts(pointer.version, stretches) + 1
    return BatchRequest(
        batch_id=_batch_id(run.run_id, pointer.version, stretches, attempt),
        environment=run.environment.name,
        model=model.name,
        version=pointer.version,
        fingerprint=pointer.fingerprint,
        stretches=stretches,
        cells=tuple(model.cadence.cells(stretches)),
        reads={
            name: cells
            for name, cells in input_cells(run, model, stretches).items()
            if name in run.graph.models
        },
        source_pins=tuple(
            _source_pin(run, run.graph.sources[upstream.name])
            for upstream in model.reads
            if upstream.name in run.graph.sources
        ),
        run_id=run.run_id,
        root_id=run.root_id,
        plan_id=run.plan_id,
        reason=reason,
        attempt=attempt,
        slots=Slots(model.batch_concurrency, run.project.batches_at_once),
        who=run.project.who,
        seen=seen,
    )


def input_cells(run: RunContext, model: Model, cells: IntervalSet) -> dict[str, IntervalSet]:
    """Give the cells that a batch reads by upstream: of itself only earlier ones, of some perhaps none."""
    read = {
        upstream.name: cells_read(
            model.cadence,
            upstream,
            run.graph.node(upstream.name).cadence,
            cells,
            until=run.until,
        )
        for upstream in model.reads
    }
    if model.name in read:
        read[model.name] -= cells
    return read


def _source_pin(run: RunContext, source: Source) -> InputPin:
    path = located(source.path, run.data_root)
    place = run.store.place(path)
    return InputPin(source.name, "", place, head(path), table_id=table_id(path))


def _batch_id(run_id: str, version: str, stretches: IntervalSet, attempt: int) -> str:
    cells = "|".join(
        f"{stretch.start.isoformat()}|{stretch.end.isoformat()}" for stretch in stretches
    )
    text = f"{run_id}|{version}|{cells}|{attempt}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
