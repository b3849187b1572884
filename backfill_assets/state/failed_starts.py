"""The last failure of each model before a batch of it began; those of batches are kept with the batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.failure import FailedStart
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import FAILED_STARTS

if TYPE_CHECKING:
    from backfill_assets.state.database import Database


class FailedStarts(Aggregate[D]):
    """What failed before a batch began, the last of each model. Each method is one transaction."""

    def of_environment(self, environment: str) -> dict[str, FailedStart]:
        """Read an environment's failures, by model."""
        return self._database.read(failed_starts, environment)

    def keep(self: FailedStarts[Database], environment: str, failed: FailedStart) -> None:
        """Keep a failure in place of the one before; of the same run, add its cells."""

        def work(connection: sa.Connection) -> None:
            before = failed_starts(connection, environment).get(failed.model)
            same_run = before is not None and before.run_id == failed.run_id
            cells = failed.cells | before.cells if before and same_run else failed.cells
            at = FAILED_STARTS.c
            own = sa.and_(at.environment == environment, at.model == failed.model)
            connection.execute(sa.delete(FAILED_STARTS).where(own))
            values = {**values_of(failed), "environment": environment, "cells": cells}
            connection.execute(sa.insert(FAILED_STARTS).values(values))

        self._database.write(work)


def failed_starts(connection: sa.Connection, environment: str) -> dict[str, FailedStart]:
    """Read an environment's failures before a batch began, by model."""
    query = sa.select(FAILED_STARTS).where(FAILED_STARTS.c.environment == environment)
    return {row.model: read_as(FailedStart, row) for row in connection.execute(query)}
