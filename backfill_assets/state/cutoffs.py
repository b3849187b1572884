"""Cutoffs as the state keeps them: written with a plan's workspace, in force once it is promoted.

A cutoff whose plan was rolled back is no longer in force; the one before it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.cutoff import Cutoff
from backfill_assets.snapshots.environment import plan_of, workspace_name
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.rows import insert_all
from backfill_assets.state.tables import CUTOFFS, PLANS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The cutoffs of an environment, the latest first. Those of a workspace are all in force.
_WRITTEN = (
    sa.select(CUTOFFS.c.model, CUTOFFS.c.since, CUTOFFS.c.reason, CUTOFFS.c.plan_id)
    .where(CUTOFFS.c.environment == sa.bindparam("environment"))
    .order_by(CUTOFFS.c.number.desc())
)
_PROMOTED = _WRITTEN.where(
    CUTOFFS.c.plan_id.in_(sa.select(PLANS.c.plan_id).where(PLANS.c.status == PlanStatus.PROMOTED))
)


def cutoffs(connection: sa.Connection, environments: Iterable[str]) -> dict[str, Cutoff]:
    """Read the cutoffs in force, by model: those of the first of these environments that has some of a model."""
    effective: dict[str, Cutoff | None] = {}
    for name in environments:
        in_force = _WRITTEN if plan_of(name) is not None else _PROMOTED
        for row in connection.execute(in_force, {"environment": name}):
            if row.model not in effective:
                lifted = row.since is None
                effective[row.model] = (
                    None if lifted else Cutoff(row.since, row.reason, row.plan_id)
                )
    return {model: cutoff for model, cutoff in sorted(effective.items()) if cutoff is not None}


def save_cutoffs(
    connection: sa.Connection, plan_id: str, wanted: Mapping[str, Cutoff | None], number: int
) -> None:
    """Save the cutoffs that a plan sets, or lifts (None), with its workspace."""
    rows = [
        {
            "environment": workspace_name(plan_id),
            "model": model,
            "number": number,
            "plan_id": plan_id,
            "since": None if cutoff is None else cutoff.since,
            "reason": "" if cutoff is None else cutoff.reason,
        }
        for model, cutoff in wanted.items()
    ]
    insert_all(connection, CUTOFFS, rows)


def publish_cutoffs(connection: sa.Connection, plan_id: str, environment: str, number: int) -> None:
    """Copy the cutoffs of a plan's workspace to an environment."""
    ours = sa.select(CUTOFFS).where(CUTOFFS.c.environment == workspace_name(plan_id))
    rows = [
        {**row, "environment": environment, "number": number}
        for row in connection.execute(ours).mappings()
    ]
    insert_all(connection, CUTOFFS, rows)
