"""Workspaces: what a plan builds in, opened and dropped at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.environment import Environment, workspace_name
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets.state import pointers, versions
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.counter import next_number
from backfill_assets.state.cutoffs import save_cutoffs
from backfill_assets.state.environments import (
    environment,
    find_environment,
    forget_environment,
    save_environment,
)
from backfill_assets.state.owed import Mark, forget_owed, mark_owed
from backfill_assets.state.plans import find_plan, wrong_status
from backfill_assets.state.promotions import PromotionPendingError, open_intents
from backfill_assets.state.tables import BATCHES, CLAIMS
from backfill_assets.state.versions import NewVersion, owned_elsewhere

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from backfill_assets.snapshots.workspace import WorkspaceModel, WorkspaceRequest


def open_workspace(
    connection: sa.Connection, request: WorkspaceRequest, now: datetime
) -> Environment:
    """Open a plan's workspace; of one that is open already, add what is missing.

    Raises:
        UnknownEnvironmentError: the environment to follow is not there.
        RequestError: a table that it would write belongs to somebody else.
        VersionCollectingError: one is being deleted.
        RequestError: the plan's life is over.
    """
    _check_alive(connection, request.plan_id)
    followed = environment(connection, request.environment)
    name = workspace_name(request.plan_id)
    for each in request.models:
        _check_owner(connection, each.pointer.version, name, followed)
    opened = find_environment(connection, name) or _open(connection, request, name)
    there = pointers.own_pointers(connection, name)
    for each in request.models:
        if each.pointer.model not in there:
            _point(connection, request.plan_id, each, now)
    return opened


def drop_workspace(
    connection: sa.Connection, plan_id: str, now: datetime, lease: timedelta
) -> None:
    """Forget a plan's workspace, its pointers and what it owed.

    Raises:
        CellsClaimedError: a live batch is building in it.
        PromotionPendingError: its promotion has begun.
    """
    name = workspace_name(plan_id)
    own = [each.version for each in pointers.own_pointers(connection, name).values()]
    for intent in open_intents(connection):
        if intent.plan_id == plan_id:
            raise PromotionPendingError(intent, ", ".join(intent.versions))
    here = sa.select(BATCHES.c.batch_id).where(BATCHES.c.environment == name)
    live = sa.select(CLAIMS).where(CLAIMS.c.batch_id.in_(here), CLAIMS.c.heartbeat_at > now - lease)
    for claim in connection.execute(live.limit(1)):
        raise CellsClaimedError(claim)
    forget_environment(connection, name, now)
    _give_back(connection, name, own)
    forget_owed(connection, plan_id)


def _check_alive(connection: sa.Connection, plan_id: str) -> None:
    found, alive = find_plan(connection, plan_id), (PlanStatus.PROPOSED, *OPEN)
    if found is not None and found.status not in alive:
        raise wrong_status(plan_id, found.status, alive)


def _give_back(connection: sa.Connection, name: str, own: list[str]) -> None:
    """Let those who read a table that the workspace had taken over write it again."""
    readers = {each.version: each.environment for each in pointers.all_pointers(connection)}
    for version in own:
        if version in readers and versions.find_owner(connection, version) == name:
            versions.set_owner(connection, version, readers[version])


def _open(connection: sa.Connection, request: WorkspaceRequest, name: str) -> Environment:
    opened = next_number(connection)
    # The number after is nobody's: what the workspace changes is told by it, and so is older than
    # whatever the workspace builds.
    next_number(connection)
    made = Environment(name, protected=False, follows=request.environment, opened=opened)
    save_environment(connection, made)
    for each in request.owed:
        mark = Mark(each.reason, request.plan_id, request.environment)
        mark_owed(connection, each.version, each.cells, mark)
    save_cutoffs(connection, request.plan_id, request.cutoffs, opened)
    return made


def _point(connection: sa.Connection, plan_id: str, model: WorkspaceModel, now: datetime) -> None:
    at = replace(model.pointer, environment=workspace_name(plan_id))
    wanted = NewVersion(at.version, at.model, model.path, at.environment, plan_id)
    versions.ensure_version(connection, wanted)
    versions.set_owner(connection, at.version, at.environment)
    pin = versions.known_head(connection, at.version)
    pointers.put_pointer(connection, replace(at, delta_version=pin), now)


def _check_owner(connection: sa.Connection, version: str, name: str, followed: Environment) -> None:
    """Make sure that a table may become the workspace's own.

    It may when nobody owns it, when the environment whose history the plan changes does, or when an
    unprotected one does and the plan is for a protected one.
    """
    owner = versions.find_owner(connection, version)
    if owner in (None, name, followed.name):
        return
    found = find_environment(connection, owner)
    if found is None or (followed.protected and not found.protected and not found.is_workspace):
        return
    raise owned_elsewhere(version, owner, name)
