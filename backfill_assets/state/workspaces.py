"""Workspaces: opened and dropped at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.snapshots.workspace import WorkspaceRequest


def open_workspace(connection: object, request: WorkspaceRequest, now: datetime) -> Environment:
    raise NotImplementedError


def drop_workspace(connection: object, plan_id: str, heard_after: datetime) -> None:
    raise NotImplementedError
