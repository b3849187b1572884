"""Computing a batch: its inputs at their pins, its target as it stands, and who may stop it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.batch_inputs import history_of, published_for_audits, target_table
from backfill_assets.engine.batch.effects import effects_of
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.warehouse.rows.computed import EmptyBatch, holds_kept_rows
from backfill_assets.warehouse.rows.inputs import no_rows
from backfill_assets.warehouse.spark.driver import interrupt
from backfill_assets.warehouse.spark.session import batch_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from backfill_assets.engine.project.cancelling import RunningBatch
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.warehouse.files.tables import Table
    from backfill_assets.warehouse.rows.computed import ComputedBatch
    from backfill_assets.warehouse.rows.kept_rows import History


@contextmanager
def computing(
    run: RunContext, opened: OpenBatch, now: datetime
) -> Iterator[tuple[RunningBatch, ComputedBatch | EmptyBatch]]:
    """Compute a batch; cells that are recorded empty, and hold nothing to keep, need no Spark."""
    model = run.graph.model(opened.request.model)
    target = target_table(run, model, run.pointer(model))
    history = None if opened.request.reason == EMPTY else history_of(run, model.name)
    with computing_into(run, opened, target, now, history) as computed:
        yield computed


@contextmanager
def computing_into(
    run: RunContext,
    opened: OpenBatch,
    target: Table,
    now: datetime,
    history: History | None = None,
) -> Iterator[tuple[RunningBatch, ComputedBatch | EmptyBatch]]:
    """Compute a batch into files of a table that it may never commit to.

    Args:
        run: its models, and the steps that it takes.
        opened: the batch, its inputs pinned.
        target: the table as it stands, layers included.
        now: the instant at which it begins to compute: its rows are stamped with it, and of a source that is
            read as a whole it reads the cells that are over by then.
        history: the published table, whose kept rows are carried over or counted.
    """
    request, model = opened.request, run.graph.model(opened.request.model)
    does = effects_of(run)
    inputs = does.inputs(replace(run, until=now), model, opened)
    empty = request.reason == EMPTY
    if empty and not holds_kept_rows(model, request.cells, target):
        batch = EmptyBatch(model, request.cells, target, run.spark)
        with run.flights.begun(model.name, _nothing, run.allowed(model)) as flight:
            yield flight, batch
        return
    session = batch_session(run.spark(), request.resources)
    computed = does.computed(
        session,
        model,
        opened,
        inputs,
        target=target,
        now=now,
        rows_from=no_rows if empty else does.rows,
        history=history,
        published=published_for_audits(run, model),
    )
    stopping = run.flights.begun(model.name, partial(interrupt, session), run.allowed(model))
    with stopping as flight, computed as batch:
        yield flight, batch


def _nothing() -> None:
    """Interrupt nothing: Spark does nothing for the batch."""
