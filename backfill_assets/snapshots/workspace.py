"""The opening of a plan's workspace: its pointers, and the cells that are owed from then on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.cutoff import Cutoff
    from backfill_assets.snapshots.environment import Pointer


@dataclass(frozen=True, slots=True)
class WorkspaceModel:
    """One model that a plan builds, or lets run another snapshot.

    Attributes:
        pointer: the workspace's own pointer. Of a table that stands alone the pin is taken from what
            the state knows of the table, whatever is said here.
        path: where its table lies, or will.
    """

    pointer: Pointer
    path: str


@dataclass(frozen=True, slots=True)
class OwedCells:
    """Cells that are owed in an environment until they are rebuilt.

    Attributes:
        version: the table that the environment reads them from.
        cells: which.
        reason: in words.
        environment: which one; None for the one whose workspace is opened, or that is published to.
    """

    version: str
    cells: IntervalSet
    reason: str
    environment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRequest:
    """What opening a plan's workspace takes.

    Attributes:
        plan_id: whose.
        environment: that it follows: the one whose history the plan changes.
        models: its own pointers.
        owed: what the plan restates.
        cutoffs: what the plan sets, by model; None where it lifts one.
    """

    plan_id: str
    environment: str
    models: tuple[WorkspaceModel, ...]
    owed: tuple[OwedCells, ...] = ()
    cutoffs: Mapping[str, Cutoff | None] = field(default_factory=dict[str, "Cutoff | None"])
