"""The last failure of each model before a batch of it began; those of batches are kept with the batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.failure import FailedStart, FailureKind
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.tables import FAILED_STARTS

if TYPE_CHECKING:
    from backfill_assets.state.database import Database


class Failures(Aggregate[D]):
    """What failed before a batch began, the last of each model. Each method is one transaction."""

    def of_environment(self, environment: str) -> dict[str, FailedStart]:
        """Read an environment's failures, by model."""
        return self._database.read(lambda connection: failed_starts(connection, environment))

    def keep(self: Failures[Database], environment: str, failed: FailedStart) -> None:
        """Keep a failure in place of the one before; of the same run, add its cells."""

        def work(connection: sa.Connection) -> None:
            before = failed_starts(connection, environment).get(failed.model)
            same_run = before is not None and before.run_id == failed.run_id
            cells = failed.cells | before.cells if before and same_run else failed.cells
            at = FAILED_STARTS.c
            own = sa.and_(at.environment == environment, at.model == failed.model)
            connection.execute(sa.delete(FAILED_STARTS).where(own))
            kept = sa.insert(FAILED_STARTS).values(
                environment=environment,
                model=failed.model,
                cells=cells,
                error=failed.error,
                failure=failed.kind.value,
                run_id=failed.run_id,
                who=failed.who,
                at=failed.at,
            )
            connection.execute(kept)

        self._database.write(work)


def failed_starts(connection: sa.Connection, environment: str) -> dict[str, FailedStart]:
    """Read an environment's failures before a batch began, by model."""
    wanted = sa.select(FAILED_STARTS).where(FAILED_STARTS.c.environment == environment)
    return {
        row.model: FailedStart(
            model=row.model,
            cells=row.cells,
            error=row.error,
            kind=FailureKind(row.failure),
            run_id=row.run_id,
            who=row.who,
            at=row.at,
        )
        for row in connection.execute(wanted)
    }
