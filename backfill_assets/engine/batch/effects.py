"""The effects of a batch: the steps that `run_batch` takes, one function each.

A run may be given others: adopting takes its rows from another table, and a test lets a step wait, fail
or die.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.batch.audited import audited
from backfill_assets.engine.batch.batch_inputs import batch_inputs
from backfill_assets.engine.batch.commit_turn import commit_turn, record
from backfill_assets.warehouse.rows.computed import computed_batch
from backfill_assets.warehouse.rows.inputs import compute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.warehouse.files.tables import Table
    from backfill_assets.warehouse.log.ticket import FoundCommit, Ticket
    from backfill_assets.warehouse.rows.computed import ComputedBatch, EmptyBatch
    from backfill_assets.warehouse.rows.inputs import RowsFrom


def commit(
    batch: ComputedBatch | EmptyBatch,
    ticket: Ticket,
    target_now: Table,
    unchanged: Mapping[Interval, int],
) -> FoundCommit:
    """Let a batch's cells consist of its files, in one commit; see `ComputedBatch.commit`."""
    return batch.commit(ticket, target_now, unchanged)


@dataclass(frozen=True, slots=True)
class Effects:
    """What a batch does, step by step, in this order.

    Attributes:
        inputs: gives what it reads, at its pins.
        rows: gives its rows: the model's own query, unless told otherwise.
        computed: writes them as files that no log names.
        audited: measures and judges these.
        turn: holds the table's lock.
        commit: names the files in the table's log.
        record: makes the cells ready.
    """

    inputs: Callable[..., Any] = batch_inputs
    rows: RowsFrom = compute
    computed: Callable[..., Any] = computed_batch
    audited: Callable[..., Any] = audited
    turn: Callable[..., Any] = commit_turn
    commit: Callable[..., Any] = commit
    record: Callable[..., Any] = record


def effects_of(run: RunContext) -> Effects:
    """Give the effects of a run's batches."""
    return run.project.effects or USUAL


USUAL = Effects()
"""Those of every run that is given no others."""
