"""Cutoffs as the state keeps them: written with a plan's workspace, in force once it is promoted.

A cutoff whose plan was taken back is in force no more; the one before it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.snapshots.cutoff import Cutoff
from backfill_assets.snapshots.environment import plan_of, workspace_name
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.pointers import followed
from backfill_assets.state.tables import CUTOFFS, PLANS

if TYPE_CHECKING:
    from collections.abc import Mapping


def cutoffs(connection: sa.Connection, environment: str) -> dict[str, Cutoff]:
    """Read the cutoffs in force, by model: the environment's own, else those of what it follows."""
    found: dict[str, Cutoff | None] = {}
    for name in followed(connection, environment):
        for row in connection.execute(_in_force(name)):
            if row.model not in found:
                lifted = row.since is None
                found[row.model] = None if lifted else Cutoff(row.since, row.reason, row.plan_id)
    return {model: one for model, one in sorted(found.items()) if one is not None}


def save_cutoffs(
    connection: sa.Connection, plan_id: str, wanted: Mapping[str, Cutoff | None], number: int
) -> None:
    """Keep what a plan sets, or lifts (None), with its workspace."""
    rows = [
        {
            "environment": workspace_name(plan_id),
            "model": model,
            "number": number,
            "plan_id": plan_id,
            "since": None if one is None else one.since,
            "reason": "" if one is None else one.reason,
        }
        for model, one in wanted.items()
    ]
    if rows:
        connection.execute(sa.insert(CUTOFFS), rows)


def publish_cutoffs(connection: sa.Connection, plan_id: str, environment: str, number: int) -> None:
    """Let an environment obey what a plan's workspace has obeyed."""
    ours = sa.select(CUTOFFS).where(CUTOFFS.c.environment == workspace_name(plan_id))
    rows = [
        {**row, "environment": environment, "number": number}
        for row in connection.execute(ours).mappings()
    ]
    if rows:
        connection.execute(sa.insert(CUTOFFS), rows)


def _in_force(name: str) -> sa.Select[Any, Any, Any, Any]:
    """Select what counts in one environment, the latest first: in a workspace, all of it."""
    columns = (CUTOFFS.c.model, CUTOFFS.c.since, CUTOFFS.c.reason, CUTOFFS.c.plan_id)
    wanted = sa.select(*columns).where(CUTOFFS.c.environment == name)
    if plan_of(name) is None:
        promoted = sa.select(PLANS.c.plan_id).where(PLANS.c.status == PlanStatus.PROMOTED.value)
        wanted = wanted.where(CUTOFFS.c.plan_id.in_(promoted))
    return wanted.order_by(CUTOFFS.c.number.desc())
