"""What the checks of plans have found, and which of these findings people have accepted."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.tables import ACCEPTANCES, PLAN_CHECKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.state.database import Database


class Checks(Aggregate[D]):
    """The last results of each plan's checks, and what was accepted. Each method is one transaction."""

    def of_plan(self, plan_id: str) -> tuple[PlanCheck, ...]:
        """Read what the checks of a plan found last; empty before they ran."""
        return self._database.read(lambda connection: checks(connection, plan_id))

    def acceptances(self, plan_id: str) -> tuple[Acceptance, ...]:
        """Read what people have accepted of a plan, the first one first; not all of it need hold."""
        return self._database.read(lambda connection: acceptances(connection, plan_id))

    def keep(self: Checks[Database], plan_id: str, found: Sequence[PlanCheck]) -> None:
        """Keep what the checks found, in the place of what they found before.

        They are made again before a promotion, so a state that can't be written now loses nothing.
        """
        now = self._clock()
        with suppress(StateBusyError, StateUnavailableError):
            self._database.write(lambda connection: keep_checks(connection, plan_id, found, now))

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
        self._database.write(lambda connection: add_acceptance(connection, accepted))
        return accepted


_COLUMN_NAMES: Mapping[str, str] = {"check": "check_name", "text": "found"}
"""Attributes whose columns have another name: these words mean something in SQL."""

_NOT_KEPT = ("accepted",)
"""What follows from the acceptances."""


def checks(connection: sa.Connection, plan_id: str) -> tuple[PlanCheck, ...]:
    """Read what the checks of a plan found last."""
    wanted = sa.select(PLAN_CHECKS).where(PLAN_CHECKS.c.plan_id == plan_id)
    rows = connection.execute(wanted.order_by(PLAN_CHECKS.c.number))
    return tuple(PlanCheck(**_attributes(row, PlanCheck)) for row in rows)


def acceptances(connection: sa.Connection, plan_id: str) -> tuple[Acceptance, ...]:
    """Read what people have accepted of a plan."""
    wanted = sa.select(ACCEPTANCES).where(ACCEPTANCES.c.plan_id == plan_id)
    rows = connection.execute(wanted.order_by(ACCEPTANCES.c.number))
    return tuple(Acceptance(**_attributes(row, Acceptance)) for row in rows)


def keep_checks(
    connection: sa.Connection, plan_id: str, found: Sequence[PlanCheck], now: datetime
) -> None:
    """Replace what the checks of a plan have found."""
    connection.execute(sa.delete(PLAN_CHECKS).where(PLAN_CHECKS.c.plan_id == plan_id))
    rows = [
        {**_columns(check), "plan_id": plan_id, "number": number, "at": now}
        for number, check in enumerate(found)
    ]
    if rows:
        connection.execute(sa.insert(PLAN_CHECKS), rows)


def add_acceptance(connection: sa.Connection, accepted: Acceptance) -> None:
    """Add an acceptance after those that are there."""
    last = sa.select(sa.func.coalesce(sa.func.max(ACCEPTANCES.c.number), 0))
    number = connection.execute(last.where(ACCEPTANCES.c.plan_id == accepted.plan_id)).scalar_one()
    connection.execute(sa.insert(ACCEPTANCES).values(**_columns(accepted), number=number + 1))


def _attributes(row: sa.Row[Any], kind: type[Any]) -> dict[str, Any]:
    names = [name for name in kind.__dataclass_fields__ if name not in _NOT_KEPT]
    return {name: getattr(row, _COLUMN_NAMES.get(name, name)) for name in names}


def _columns(value: PlanCheck | Acceptance) -> dict[str, Any]:
    names = [name for name in value.__dataclass_fields__ if name not in _NOT_KEPT]
    return {_COLUMN_NAMES.get(name, name): getattr(value, name) for name in names}
