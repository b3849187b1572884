"""Open a batch: verify its inputs, pin them, claim its cells; one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import GAP, OpenBatch
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.state import batches, claims, pointers, ready, versions
from backfill_assets.state.claims import Claimant
from backfill_assets.state.counter import next_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    import sqlalchemy as sa

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.batch import BatchRequest


class UpstreamNotReadyError(BackfillAssetsError):
    """A batch reads cells that its environment does not hold yet."""

    def __init__(self, model: str, upstream: str, missing: IntervalSet) -> None:
        self.model, self.upstream, self.missing = model, upstream, missing
        listed = [str(interval) for interval in missing]
        shown = ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if listed[3:] else "")
        super().__init__(
            f"{model} reads {upstream} over {shown}, where it is not ready; expected audited data "
            f"there. Fill {upstream} first"
        )


class VersionMovedError(BackfillAssetsError):
    """The environment reads another version than the one that the batch would write."""

    def __init__(self, request: BatchRequest, found: str | None) -> None:
        self.model, self.asked, self.found = request.model, request.version, found
        super().__init__(
            f"environment '{request.environment}' points at "
            f"{f'version {found}' if found else 'no version'} of {request.model}, the batch would "
            f"write {request.version}. Plan again; a batch runs what its environment points at"
        )


class CellsReadyError(BackfillAssetsError):
    """Another run has filled a gap while its batch was on its way."""

    def __init__(self, model: str, built_by: Mapping[Interval, str]) -> None:
        self.model, self.built_by = model, built_by
        super().__init__(
            f"{len(built_by)} cells of {model} were filled by another run meanwhile; a gap fill "
            "leaves ready cells as they are. Run again for what is still missing"
        )


def open_batch(
    connection: sa.Connection, request: BatchRequest, now: datetime, lease: timedelta
) -> OpenBatch:
    """Claim a batch's cells and pin what it reads.

    Raises:
        VersionMovedError: its environment points at another version.
        UpstreamNotReadyError: it reads cells that are not ready at the pin.
        CellsClaimedError: a live batch holds some of its cells.
        CellsReadyError: it fills a gap, and some of its cells are ready by now.
    """
    own = pointers.pointer(connection, request.environment, request.model)
    if own is None or own.version != request.version:
        raise VersionMovedError(request, None if own is None else own.version)
    claimant = Claimant(
        request.batch_id, request.run_id, request.model, request.version, now, lease
    )
    claims.claim(connection, claimant, request.interval)
    if request.reason == GAP:
        _refuse_ready(connection, request, own.delta_version)
    pins = tuple(_pin(connection, request, upstream) for upstream in sorted(request.reads))
    opened = OpenBatch(request, next_number(connection), (*pins, *request.source_pins))
    batches.begin_batch(connection, opened, now)
    return opened


def _refuse_ready(connection: sa.Connection, request: BatchRequest, at: int) -> None:
    cells = IntervalSet.of([request.interval])
    if not ready.ready_cells(connection, request.version, at, cells):
        return
    builders = ready.built_by(connection, request.version, at)
    inside = {cell: one.batch_id for cell, one in builders.items() if cell in cells}
    raise CellsReadyError(request.model, inside)


def _pin(connection: sa.Connection, request: BatchRequest, upstream: str) -> InputPin:
    needed = request.reads[upstream]
    found = pointers.pointer(connection, request.environment, upstream)
    if found is None:
        raise UpstreamNotReadyError(request.model, upstream, needed)
    there = ready.ready_cells(connection, found.version, found.delta_version, needed)
    missing = needed - there
    if missing:
        raise UpstreamNotReadyError(request.model, upstream, missing)
    path = versions.version_path(connection, found.version)
    return InputPin(upstream, found.version, path, found.delta_version)
