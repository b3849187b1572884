"""Open a batch in one transaction: verify its inputs, pin them, claim its cells.

A batch that waits for a slot gets it before batches that came later. Otherwise a long run would hand each
slot that it frees to its own next batch, and no other run would ever find one. A turn is an order, not a
hold: a run that is not heard of for some seconds has lost it, and in a limit only those batches count that
wait for that very limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted, first_of
from backfill_assets.snapshots.batch import GAP, OpenBatch
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.state import (
    batch_rows,
    claims,
    layers,
    limits,
    pointers,
    queue,
    versions,
)
from backfill_assets.state.claims import Claimant
from backfill_assets.state.counter import next_number
from backfill_assets.state.environments import find_environment
from backfill_assets.state.sources import at_observed_heads
from backfill_assets.state.tables import SLOT_WAITERS
from backfill_assets.state.versions import owned_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.batch import BatchRequest
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.ready import ReadyRecord


class UpstreamNotReadyError(BackfillAssetsError):
    """A batch reads cells that its environment does not hold yet."""

    def __init__(self, model: str, upstream: str, missing: IntervalSet) -> None:
        self.model, self.upstream, self.missing = model, upstream, missing
        shown = first_of(map(str, missing), 3)
        super().__init__(
            f"{model} reads {upstream} for {shown}, which is not built yet. Fill {upstream} first"
        )


class VersionMovedError(BackfillAssetsError):
    """The environment reads another version than the one that the batch would write."""

    def __init__(self, request: BatchRequest, found: str | None) -> None:
        self.model, self.asked, self.found = request.model, request.version, found
        super().__init__(
            f"environment '{request.environment}' points at "
            f"{f'version {found}' if found else 'no version'} of {request.model}, but the batch would "
            f"write {request.version}. Run `backfill plan` again"
        )


class CellsReadyError(BackfillAssetsError):
    """Another run has built cells while the batch of this one was on its way."""

    def __init__(self, model: str, built_by: Mapping[Interval, str]) -> None:
        self.model, self.built_by = model, built_by
        super().__init__(
            f"another run has built {counted(len(built_by), 'cell')} of {model} in the meantime; what it has "
            "built is kept"
        )


def open_in_turn(
    connection: sa.Connection, request: BatchRequest, now: datetime, lease: timedelta
) -> OpenBatch | BackfillAssetsError:
    """Open a batch, or remember that it waits for a slot; return the error that keeps it from opening.

    The error is not raised, so that the place in the order is kept and nothing else.
    """
    try:
        with connection.begin_nested():
            opened = _open_batch(connection, request, now, lease)
    except limits.NoSlotError as error:
        _wait(connection, request.batch_id, error.scope, now)
        return error
    except BackfillAssetsError as error:
        _leave(connection, request.batch_id)
        return error
    _leave(connection, request.batch_id)
    return opened


def _open_batch(
    connection: sa.Connection, request: BatchRequest, now: datetime, lease: timedelta
) -> OpenBatch:
    queue.check_control(connection, request.plan_id)
    own = pointers.pointer(connection, request.environment, request.model)
    if own is None or own.version != request.version:
        raise VersionMovedError(request, None if own is None else own.version)
    _ensure_owner(connection, own, request.environment)
    claimant = Claimant(
        request.batch_id, request.run_id, request.model, request.version, now, lease
    )
    claims.claim(connection, claimant, request.stretches)
    refuse_done(connection, request, own)
    pins = [
        pin for upstream in sorted(request.reads) for pin in _pins(connection, request, upstream)
    ]
    limits.check_slots(connection, request, now, lease)
    sources = at_observed_heads(connection, request.source_pins)
    opened = OpenBatch(request, next_number(connection), (*pins, *sources))
    batch_rows.begin_batch(connection, opened, now)
    return opened


def _ensure_owner(connection: sa.Connection, own: Pointer, environment: str) -> None:
    """Make sure that the environment alone writes its version; it takes one without an owner."""
    owner = versions.owner(connection, own.version)
    if owner == environment:
        return
    if own.environment != environment:
        raise owned_elsewhere(own.version, owner or own.environment, environment)
    if owner is not None and find_environment(connection, owner) is not None:
        raise owned_elsewhere(own.version, owner, environment)
    versions.set_owner(connection, own.version, environment)


def refuse_done(connection: sa.Connection, request: BatchRequest, own: Pointer) -> None:
    """Make sure that no other run has done the work of a batch by now.

    A gap that is ready is filled. Cells that are built again were committed to the table since that was
    decided.

    Raises:
        CellsReadyError: some cells are done.
    """
    done = {
        cell: record.batch_id
        for cell, record in layers.records(connection, own, request.stretches).items()
        if request.reason == GAP or _is_since(request, record)
    }
    if done:
        raise CellsReadyError(request.model, done)


def _is_since(request: BatchRequest, record: ReadyRecord) -> bool:
    if request.seen is None or record.version != request.version:
        return False
    return record.valid_from > request.seen


def _pins(connection: sa.Connection, request: BatchRequest, upstream: str) -> Iterator[InputPin]:
    """Pin every table that answers for some of the cells read; the upper one if no cell is."""
    needed = request.reads[upstream]
    pointer = pointers.pointer(connection, request.environment, upstream)
    if pointer is None:
        raise UpstreamNotReadyError(request.model, upstream, needed)
    parts = list(layers.parts(connection, pointer, needed))
    missing = needed - IntervalSet.union_all(cells for _, cells in parts)
    if missing:
        raise UpstreamNotReadyError(request.model, upstream, missing)
    answering = [(layer, cells) for layer, cells in parts if cells] or parts[:1]
    for layer, cells in answering:
        place = versions.place(connection, layer.version)
        part = cells if len(answering) > 1 else None
        yield InputPin(upstream, layer.version, place, layer.delta_version, part)


def _wait(connection: sa.Connection, batch_id: str, scope: str, now: datetime) -> None:
    waiter = SLOT_WAITERS.c.batch_id == batch_id
    heard = sa.update(SLOT_WAITERS).where(waiter).values(scope=scope, heard_at=now)
    if not connection.execute(heard).rowcount:
        values = {"batch_id": batch_id, "scope": scope, "since": now, "heard_at": now}
        connection.execute(sa.insert(SLOT_WAITERS).values(values))


def _leave(connection: sa.Connection, batch_id: str) -> None:
    connection.execute(sa.delete(SLOT_WAITERS).where(SLOT_WAITERS.c.batch_id == batch_id))
