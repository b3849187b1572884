"""Batches as the state keeps them: one row each, from before it computes until it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.batch import COMMITTED, FAILED, RUNNING
from backfill_assets.state.cells import bounds, stretches_of
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.batch import BatchCommit, BatchRequest, OpenBatch
    from backfill_assets.snapshots.failure import FailureKind
    from backfill_assets.snapshots.ready import InputPin

_DESCRIBED = (
    "batch_id", "environment", "model", "version", "fingerprint", "run_id", "root_id", "plan_id",
    "reason", "attempt",
)  # fmt: skip


_AT_ONCE = 10_000
"""How many ids one query names: PostgreSQL takes 65,535 at most."""
_SECONDS = sa.cast(sa.func.coalesce(BATCHES.c.seconds, BATCHES.c.ends - BATCHES.c.starts), sa.Float)
OF_BATCH: Mapping[str, sa.ColumnElement[Any]] = {
    "pinned_at": BATCHES.c.built_at,
    "bytes_per_second": BATCHES.c.bytes_written / _SECONDS,
    "began_at": BATCHES.c.started_at,
    "fingerprint": BATCHES.c.fingerprint,
    "reason": BATCHES.c.reason,
}
"""What a ready cell's row has of the batch that built it: see `ReadyRun`."""


class UnknownBatchError(BackfillAssetsError):
    """No batch of this id was ever opened."""

    def __init__(self, batch_id: str) -> None:
        self.batch_id = batch_id
        super().__init__(
            f"batch '{batch_id}' is not in the state; expected the id of a batch that `open_batch` returned"
        )


@dataclass(frozen=True, slots=True)
class BatchRow:
    """All that is known of one batch.

    Attributes:
        batch_id: its id.
        environment: whose pointers it read and moved.
        model: what it built.
        version: the table that it wrote.
        fingerprint: the snapshot that it ran: the code version.
        run_id: the run that carried it.
        root_id: the root run or backfill.
        plan_id: the plan that it served; None for a gap fill.
        reason: why it ran.
        attempt: 1 for the first.
        stretches: its cells.
        status: ``running``, ``committed``, ``failed`` or ``abandoned``.
        built_at: counter value of the transaction that pinned its inputs.
        inputs: what it read.
        started_at: when it was opened.
        finished_at: when it ended; None while it runs.
        delta_version: of its commit, if it got that far.
        rows: how many its cells hold.
        bytes_written: by its commit, if Delta reported it.
        error: why it failed.
        failure: which kind of failure that was; None for none.
        resources: the Spark settings that were its own; None for none, or if the row was
            restored from the table's log.
        who: the person or the automation whose run it was; None where that is not known.
    """

    batch_id: str
    environment: str
    model: str
    version: str
    fingerprint: str
    run_id: str
    root_id: str
    plan_id: str | None
    reason: str
    attempt: int
    stretches: IntervalSet
    status: str
    built_at: int
    inputs: tuple[InputPin, ...]
    started_at: datetime
    finished_at: datetime | None
    delta_version: int | None
    rows: int | None
    bytes_written: int | None
    error: str | None
    failure: FailureKind | None = None
    resources: Mapping[str, str] | None = None
    who: str | None = None

    @property
    def is_committed(self) -> bool:
        """Whether its cells were written and recorded."""
        return self.status == COMMITTED

    @property
    def has_failed(self) -> bool:
        """Whether it ended without a commit; so does one that was cancelled."""
        return self.status == FAILED


@dataclass(frozen=True, slots=True)
class Ending:
    """How a commit went.

    Attributes:
        delta_version: the number that Delta gave it.
        bytes_written: how much it wrote, if known.
        finished_at: when it was done; None if the log does not have it.
    """

    delta_version: int
    bytes_written: int | None
    finished_at: datetime | None


def batch(connection: sa.Connection, batch_id: str) -> BatchRow:
    """Read one batch.

    Raises:
        UnknownBatchError: it was never opened.
    """
    row = find_batch(connection, batch_id)
    if row is None:
        raise UnknownBatchError(batch_id)
    return row


def inputs_of(
    connection: sa.Connection, batch_ids: Iterable[str]
) -> dict[str, tuple[InputPin, ...]]:
    """Read what batches have read, by their ids; one that was never opened is not among them."""
    query = sa.select(BATCHES.c.batch_id, BATCHES.c.inputs)
    ids = sorted(set(batch_ids))
    return {
        row.batch_id: row.inputs
        for first in range(0, len(ids), _AT_ONCE)
        for row in connection.execute(
            query.where(BATCHES.c.batch_id.in_(ids[first : first + _AT_ONCE]))
        )
    }


def find_batch(connection: sa.Connection, batch_id: str) -> BatchRow | None:
    """Read one batch, or None."""
    row = connection.execute(sa.select(BATCHES).where(BATCHES.c.batch_id == batch_id)).first()
    return None if row is None else batch_of(row)


def batches(connection: sa.Connection, model: str | None, limit: int | None) -> list[BatchRow]:
    """Read batches, the latest first."""
    query = sa.select(BATCHES).order_by(BATCHES.c.built_at.desc(), BATCHES.c.batch_id)
    if model is not None:
        query = query.where(BATCHES.c.model == model)
    return [batch_of(row) for row in connection.execute(query.limit(limit))]


def batch_of(row: sa.Row[Any]) -> BatchRow:
    """Read a batch from its row."""
    return read_as(BatchRow, row, stretches=stretches_of(row))


def begin_batch(connection: sa.Connection, opened: OpenBatch, now: datetime) -> None:
    """Write that a batch runs; a batch that is tried again begins anew."""
    values = {
        **_description(opened.request),
        "status": RUNNING,
        "built_at": opened.built_at,
        "inputs": opened.inputs,
        "started_at": now,
        "resources": dict(opened.request.resources) or None,
        "who": opened.request.who or None,
    }
    _put(connection, values)


def commit_batch(connection: sa.Connection, commit: BatchCommit, ending: Ending) -> None:
    """Write that a batch is committed, also when its row was lost."""
    opened = find_batch(connection, commit.batch_id)
    own = [each for each in commit.cells if commit.interval.contains(each.cell)]
    values = {
        **_description(commit),
        "status": COMMITTED,
        "built_at": commit.built_at,
        "inputs": commit.inputs,
        "started_at": commit.started_at,
        "finished_at": ending.finished_at,
        "delta_version": ending.delta_version,
        "rows": sum(each.content.rows for each in own),
        "bytes_written": ending.bytes_written,
        "resources": opened.resources if opened else None,
        "who": opened.who if opened else None,
    }
    _put(connection, values)


def _description(described: BatchRequest | BatchCommit) -> dict[str, object]:
    cells = described.stretches
    several = {"stretches": cells, "seconds": cells.seconds()} if len(cells) > 1 else {}
    return {**values_of(described, *_DESCRIBED), **bounds(described.interval), **several}


def _put(connection: sa.Connection, values: dict[str, object]) -> None:
    connection.execute(sa.delete(BATCHES).where(BATCHES.c.batch_id == values["batch_id"]))
    connection.execute(sa.insert(BATCHES).values(values))
