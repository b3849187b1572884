"""Read the batches that failed, as far as that matters for asking again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.failed_batch import FailedBatch
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state.cells import stretches_of
from backfill_assets.state.tables import BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable

_READ = (
    "model", "version", "fingerprint", "run_id", "starts", "ends", "failure", "built_at",
    "finished_at", "stretches",
)  # fmt: skip


def failed_batches(connection: sa.Connection, versions: Iterable[str]) -> list[FailedBatch]:
    """Read the failed batches of these tables, the earliest first."""
    at = BATCHES.c
    failed = sa.and_(
        at.status == "failed", at.version.in_([*versions]), at.finished_at.is_not(None)
    )
    wanted = sa.select(at.batch_id, *(at[name] for name in _READ)).where(failed)
    read = sa.select(at.batch_id, at.inputs).where(failed, at.failure == FailureKind.INPUT.value)
    sources = {
        row.batch_id: {pin.upstream: pin.delta_version for pin in row.inputs if not pin.version}
        for row in connection.execute(read)
    }
    return [
        FailedBatch(
            batch_id=row.batch_id,
            model=row.model,
            version=row.version,
            fingerprint=row.fingerprint,
            run_id=row.run_id,
            cells=stretches_of(row),
            kind=None if row.failure is None else FailureKind(row.failure),
            built_at=row.built_at,
            ended=row.finished_at,
            sources=sources.get(row.batch_id, {}),
        )
        for row in connection.execute(wanted.order_by(at.built_at, at.batch_id))
    ]
