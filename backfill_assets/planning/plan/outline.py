"""Outlines of stored plans that this release can't read: what the state keeps beside their content.

Another release may have made a plan in a form that is not known here. Such a plan can't go on, but what it
is at work on stays its own, so its outline stands for it wherever plans are held against each other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Build, CellWork, Change, ModelPlan, Plan, Why
from backfill_assets.planning.plan.plan_json import PlanFormatError, read_plan
from backfill_assets.planning.plan.request import PlanRequest

if TYPE_CHECKING:
    from backfill_assets.snapshots.stored_plan import StoredPlan


def plan_or_outline(stored: StoredPlan) -> Plan:
    """Read a stored plan; of one that can't be read give the outline."""
    read = _read(stored.content)
    return read if isinstance(read, Plan) else outline_of(stored)


def why_unreadable(stored: StoredPlan) -> str:
    """Say why a stored plan can't be read; empty for one that can."""
    read = _read(stored.content)
    return read.found if isinstance(read, PlanFormatError) else ""


def outline_of(stored: StoredPlan) -> Plan:
    """Give a plan that is known by its id, its environment and its cells alone.

    Whether it moves a model's table or builds in it is not known, so it has each model in both ways.
    """
    return Plan(
        plan_id=stored.plan_id,
        request=PlanRequest(
            environment=stored.environment, asked_by=stored.created_by, reason=stored.reason
        ),
        environment=stored.environment,
        protected=True,
        created_at=stored.created_at,
        expires_at=stored.expires_at,
        until=stored.created_at,
        seen=0,
        models=tuple(
            ModelPlan(
                model=name,
                change=Change.UNCHANGED,
                category=None,
                build=build,
                fingerprint="",
                version="",
                work=(CellWork(Why.RESTATED, cells),),
            )
            for name, cells in stored.cells.items()
            for build in (Build.NEW_VERSION, Build.IN_PLACE)
        ),
    )


@lru_cache(maxsize=16)
def _read(content: str) -> Plan | PlanFormatError:
    try:
        return read_plan(content)
    except PlanFormatError as error:
        return error
