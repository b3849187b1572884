"""Claims: a batch holds its cells from before it computes, so that no other run builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import ABANDONED, RUNNING
from backfill_assets.state.cells import bounds, cell_of, reached
from backfill_assets.state.rows import insert_all, values_of
from backfill_assets.state.tables import BATCHES, CLAIMS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from backfill_assets.intervals.interval import Interval

_LIVE = sa.select(CLAIMS).where(CLAIMS.c.heartbeat_at > sa.bindparam("heard_after"))


class CellsClaimedError(BackfillAssetsError):
    """Another batch is building some of the cells right now."""

    def __init__(self, claim: sa.Row[Any]) -> None:
        self.run_id: str = claim.run_id
        self.batch_id: str = claim.batch_id
        self.model: str = claim.model
        self.interval: Interval = cell_of(claim)
        self.since: datetime = claim.claimed_at
        super().__init__(
            f"cells {self.interval} of {self.model} are being built by run {self.run_id} (batch "
            f"{self.batch_id}) since {self.since.isoformat()}. Wait for it "
            "to end; if its process is dead, the claim expires after the lease"
        )


class LostClaimError(BackfillAssetsError):
    """The batch no longer holds its cells: it was silent for so long that another took them."""

    def __init__(self, batch_id: str) -> None:
        self.batch_id = batch_id
        super().__init__(
            f"batch {batch_id} no longer holds its cells: it was silent for longer than the lease "
            "and another batch took them over. It commits nothing; run again for what is missing"
        )


@dataclass(frozen=True, slots=True)
class Claimant:
    """The batch that claims, the instant, and how long a silent claim lives."""

    batch_id: str
    run_id: str
    model: str
    version: str
    now: datetime
    lease: timedelta

    def is_live(self, claim: sa.Row[Any]) -> bool:
        """Whether the claim's holder was heard within the lease."""
        return claim.heartbeat_at > self.now - self.lease


def claim(connection: sa.Connection, claimant: Claimant, cells: IntervalSet) -> None:
    """Claim a batch's own cells, and abandon dead batches that held them.

    Of an overlapping claim of the same run only moved cells count: a run cuts its own cells into
    disjoint batches, so an older batch over the same cells is an attempt that died.

    Raises:
        CellsClaimedError: a live batch holds some of them.
    """
    _drop(connection, [claimant.batch_id])
    others = _others(connection, claimant, cells)
    for each in others:
        if claimant.is_live(each) and (each.run_id != claimant.run_id or each.moved):
            raise CellsClaimedError(each)
    abandon(connection, {each.batch_id for each in others}, claimant.now)
    rows = [_row(claimant, interval, moved=False) for interval in cells]
    connection.execute(sa.insert(CLAIMS), rows)


def claim_more(connection: sa.Connection, claimant: Claimant, cells: IntervalSet) -> None:
    """Claim cells of other batches too, where a merge moves rows.

    Raises:
        CellsClaimedError: a live batch holds some of them.
        LostClaimError: the batch does not hold its own cells any more.
    """
    check_claims(connection, claimant.batch_id)
    own_cells = IntervalSet.of(_cells_of(connection, claimant.batch_id))
    new_cells = cells - own_cells
    others = _others(connection, claimant, new_cells)
    for each in others:
        if claimant.is_live(each):
            raise CellsClaimedError(each)
    abandon(connection, {each.batch_id for each in others}, claimant.now)
    rows = [_row(claimant, interval, moved=True) for interval in new_cells]
    insert_all(connection, CLAIMS, rows)


def check_claims(connection: sa.Connection, batch_id: str) -> None:
    """Make sure that the batch still holds its cells.

    Raises:
        LostClaimError: it does not.
    """
    if not _cells_of(connection, batch_id):
        raise LostClaimError(batch_id)


def refresh_claims(connection: sa.Connection, run_id: str, now: datetime) -> None:
    """Refresh the heartbeat of a run's claims."""
    refreshed = sa.update(CLAIMS).where(CLAIMS.c.run_id == run_id)
    connection.execute(refreshed.values(heartbeat_at=now))


def drop_claims(connection: sa.Connection, batch_id: str) -> None:
    """Release a batch's cells."""
    _drop(connection, [batch_id])


def abandon(connection: sa.Connection, batch_ids: Iterable[str], now: datetime) -> None:
    """Mark batches that will not end by themselves as abandoned, and drop their claims."""
    ids = list(batch_ids)
    running = sa.update(BATCHES).where(BATCHES.c.batch_id.in_(ids), BATCHES.c.status == RUNNING)
    connection.execute(running.values(status=ABANDONED, finished_at=now))
    _drop(connection, ids)


def live_claims(connection: sa.Connection, heard_after: datetime) -> dict[str, IntervalSet]:
    """Read the cells that live batches hold, by version."""
    by_version: dict[str, list[Interval]] = {}
    for row in connection.execute(_LIVE, {"heard_after": heard_after}):
        by_version.setdefault(row.version, []).append(cell_of(row))
    return {version: IntervalSet.of(cells) for version, cells in by_version.items()}


def _others(connection: sa.Connection, claimant: Claimant, cells: IntervalSet) -> list[sa.Row[Any]]:
    """Read other batches' claims on these cells of the claimant's version."""
    if not cells:
        return []
    query = sa.select(CLAIMS).where(
        CLAIMS.c.version == claimant.version,
        CLAIMS.c.batch_id != claimant.batch_id,
        reached(CLAIMS, cells),
    )
    rows = connection.execute(query.order_by(CLAIMS.c.starts)).all()
    return [row for row in rows if cells & IntervalSet.of([cell_of(row)])]


def _cells_of(connection: sa.Connection, batch_id: str) -> list[Interval]:
    query = sa.select(CLAIMS).where(CLAIMS.c.batch_id == batch_id)
    return [cell_of(row) for row in connection.execute(query)]


def _drop(connection: sa.Connection, batch_ids: list[str]) -> None:
    connection.execute(sa.delete(CLAIMS).where(CLAIMS.c.batch_id.in_(batch_ids)))


def _row(claimant: Claimant, interval: Interval, *, moved: bool) -> dict[str, object]:
    return {
        **values_of(claimant, "batch_id", "run_id", "model", "version"),
        "moved": moved,
        "claimed_at": claimant.now,
        "heartbeat_at": claimant.now,
        **bounds(interval),
    }
