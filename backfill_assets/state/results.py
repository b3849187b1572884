"""Registered results as the state keeps them: the last registration of each, by what it was computed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.result import Result
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import RESULTS

if TYPE_CHECKING:
    from backfill_assets.state.database import Database


class Results(Aggregate[D]):
    """Registered results. Each method is one transaction."""

    def of_environment(self, environment: str) -> list[Result]:
        """Read every result of an environment, by name and model."""
        query = sa.select(RESULTS).where(RESULTS.c.environment == environment)
        ordered = query.order_by(RESULTS.c.name, RESULTS.c.model, RESULTS.c.plan_id)
        return [read_as(Result, row) for row in self._rows(ordered)]

    def register(self: Results[Database], result: Result) -> None:
        """Keep what a result has used, in place of what it had used before on the same publication or plan."""

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(RESULTS).where(*_same(result)))
            connection.execute(sa.insert(RESULTS).values(values_of(result)))

        self._database.write(work)

    def forget(self: Results[Database], environment: str, name: str) -> int:
        """Forget a result, and give how many of its registrations there were."""
        own = (RESULTS.c.environment == environment, RESULTS.c.name == name)
        deleted = sa.delete(RESULTS).where(*own)
        return self._database.write(lambda connection: connection.execute(deleted).rowcount)


def _same(result: Result) -> tuple[sa.ColumnElement[bool], ...]:
    keys = values_of(result, "environment", "name", "model", "plan_id")
    return tuple(RESULTS.c[name] == value for name, value in keys.items())
