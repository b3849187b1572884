"""What the checks of plans have found, and which of these findings people have accepted."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.rows import insert_all, next_of, read_as, values_of
from backfill_assets.state.tables import ACCEPTANCES, PLAN_CHECKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.state.database import Database


class Checks(Aggregate[D]):
    """The last results of each plan's checks, and what was accepted. Each method is one transaction."""

    def of_plan(self, plan_id: str) -> tuple[PlanCheck, ...]:
        """Read what the checks of a plan found last; empty before they ran."""
        query = sa.select(PLAN_CHECKS).where(PLAN_CHECKS.c.plan_id == plan_id)
        rows = self._rows(query.order_by(PLAN_CHECKS.c.number))
        return tuple(read_as(PlanCheck, row, accepted="") for row in rows)

    def acceptances(self, plan_id: str) -> tuple[Acceptance, ...]:
        """Read what people have accepted of a plan, the first one first; not all of it need hold."""
        query = sa.select(ACCEPTANCES).where(ACCEPTANCES.c.plan_id == plan_id)
        rows = self._rows(query.order_by(ACCEPTANCES.c.number))
        return tuple(read_as(Acceptance, row) for row in rows)

    def keep(self: Checks[Database], plan_id: str, found: Sequence[PlanCheck]) -> None:
        """Keep what the checks found, in the place of what they found before.

        They are made again before a promotion, so a state that can't be written now loses nothing.
        """
        of = {"plan_id": plan_id, "at": self._clock()}
        rows = [
            {**of, **values_of(check, without="accepted"), "number": number}
            for number, check in enumerate(found)
        ]

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(PLAN_CHECKS).where(PLAN_CHECKS.c.plan_id == plan_id))
            insert_all(connection, PLAN_CHECKS, rows)

        with suppress(StateBusyError, StateUnavailableError):
            self._database.write(work)

    def accept(
        self: Checks[Database], plan_id: str, check: PlanCheck, *, who: str, reason: str
    ) -> Acceptance:
        """Record that a person accepts what a check has found."""
        accepted = Acceptance(
            plan_id=plan_id,
            model=check.model,
            check=check.check,
            text=check.text,
            basis=check.basis,
            reason=reason,
            who=who,
            at=self._clock(),
        )

        def work(connection: sa.Connection) -> None:
            own = ACCEPTANCES.c.plan_id == plan_id
            values = {
                **values_of(accepted), "number": next_of(connection, ACCEPTANCES.c.number, own),
            }  # fmt: skip
            connection.execute(sa.insert(ACCEPTANCES).values(values))

        self._database.write(work)
        return accepted
