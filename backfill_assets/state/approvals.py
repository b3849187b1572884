"""Approvals and the other signed statements about plans: rows are only ever added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.signed_statement import SignedStatement
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import APPROVALS, PLANS

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.state.database import Database


class Approvals(Aggregate[D]):
    """What principals have signed about plans. Each method is one transaction."""

    def of_plan(self, plan_id: str) -> list[SignedStatement]:
        """Read every signed statement about a plan, from the first."""
        return self._database.read(signed_statements, plan_id)

    def governed_since(self, environment: str) -> datetime | None:
        """Read when something was first signed about a plan of an environment; None: never."""
        first = sa.select(sa.func.min(APPROVALS.c.at).label("at")).join(
            PLANS, PLANS.c.plan_id == APPROVALS.c.plan_id
        )
        row = self._row(first.where(PLANS.c.environment == environment))
        return None if row is None else row.at

    def keep(self: Approvals[Database], signed: SignedStatement) -> None:
        """Keep a signed statement; the same one again changes nothing."""

        def work(connection: sa.Connection) -> None:
            statements = signed_statements(connection, signed.plan_id)
            if any(
                (row.text, row.signature) == (signed.text, signed.signature) for row in statements
            ):
                return
            values = {**values_of(signed), "number": len(statements) + 1}
            connection.execute(sa.insert(APPROVALS).values(values))

        self._database.write(work)


def signed_statements(connection: sa.Connection, plan_id: str) -> list[SignedStatement]:
    """Read every signed statement about a plan, from the first."""
    query = sa.select(APPROVALS).where(APPROVALS.c.plan_id == plan_id)
    rows = connection.execute(query.order_by(APPROVALS.c.number))
    return [read_as(SignedStatement, row) for row in rows]
